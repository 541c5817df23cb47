// Package packages holds no code, only tests of scripts/install and of
// scripts/debian-package: Debian's own tools check, install and remove the package.
package packages
