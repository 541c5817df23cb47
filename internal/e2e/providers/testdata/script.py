"""Runs SystemTap's script dtrace, in one process, for many provider files.

Arguments: the script's path, and FILE or -C:FILE for each file. Each header goes to FILE.h.
Prints a line for each: "ok", "guessed" where its grammar did not do, or "failed".
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import sys

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("script", sys.argv[1])
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("script", loader))
loader.exec_module(module)
if not module.HAVE_PYP:
    sys.exit("pyparsing is missing, without which the script guesses")
for name in sys.argv[2:]:
    said, flags = io.StringIO(), []
    if name.startswith("-C:"):
        name, flags = name[3:], ["-C"]
    sys.argv = ["dtrace", "-h", "-s", name, "-o", name + ".h"] + flags
    try:
        with contextlib.redirect_stdout(said):
            status = module.main()
    except (Exception, SystemExit):
        status = 1
    print("failed" if status else "guessed" if "Warning" in said.getvalue() else "ok")
