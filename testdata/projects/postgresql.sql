create table t (id int primary key, name text, other int)
insert into t select i, 'name ' || i, i % 7 from generate_series(1, 5000) i
create index on t (other)
update t set name = name || '!' where other = 3
select count(*), sum(a.id) from t a join t b on a.id = b.other
select name from t order by name desc limit 5
set work_mem = '64kB'
select count(*) from (select name from t order by name offset 10) s
begin
delete from t where id < 100
rollback
vacuum analyze t
checkpoint
select no_such_function()
drop table t
