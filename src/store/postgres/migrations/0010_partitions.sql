-- Time partitions of outbox_event and outbox_delivery: made ahead, and dropped when what is in them may go. Tables are
-- plain until somebody converts them: see docs/partitions.md.

-- == the layout ===================================================================================

-- No row while the tables are plain. Days are counted from 1970-01-01, in UTC.
create table {schema}.outbox_partitioning (
  is_only_row boolean     primary key default true check (is_only_row),
  -- How many days a period has that is made from now on.
  every       integer     not null check (every between 1 and 90),
  -- While it is being prepared the tables are plain and have a CHECK that lets nothing of that day or later in.
  state       text        not null check (state in ('preparing', 'partitioned')),
  -- What is older than the first period, and what was moved there from periods that are gone, is in the rest.
  rest_until  integer     not null,
  changed_at  timestamptz not null default clock_timestamp()
);

create table {schema}.outbox_period (
  first_day integer primary key,
  end_day   integer not null check (end_day > first_day)
);

create function {schema}.outbox_day_of(at timestamptz) returns integer
  language sql immutable parallel safe
  as $commitpost$ select floor(extract(epoch from at) / 86400)::integer $commitpost$;

create function {schema}.outbox_start_of(day integer) returns timestamptz
  language sql immutable parallel safe
  as $commitpost$ select to_timestamp(day * 86400.0) $commitpost$;

-- Positions have the day in front, so that deliveries, which have no time of their own, are divided by days too.
create function {schema}.outbox_first_position(day integer) returns bigint
  language sql immutable parallel safe
  as $commitpost$ select day * 10000000000 $commitpost$;

-- The bound of a partition, as a literal.
create function {schema}.outbox_bound(table_name text, day integer) returns text
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select case table_name when 'outbox_event' then quote_literal({schema}.outbox_id_at({schema}.outbox_start_of(day)))
                           else {schema}.outbox_first_position(day)::text end
  $commitpost$;

create function {schema}.outbox_relation(relation_name text) returns text
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$ select {schema:literal} || '.' || quote_ident(relation_name) $commitpost$;

-- Statements name the whole table. One that names a partition would pass by the fan-out, which is a trigger of the whole.
create function {schema}.outbox_refuse_partition() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  raise exception '% on the partition % is refused', tg_op, tg_table_name using errcode = '55000',
    hint = 'Name the table itself, outbox_event or outbox_delivery.';
end
  $commitpost$;

-- Default privileges may have given rights on what was just made, and what becomes a partition has those of a table.
create function {schema}.outbox_strip_rights(relation regclass) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  given record;
begin
  for given in
    select c.relkind, case a.grantee when 0 then 'public' else a.grantee::regrole::text end as grantee
      from pg_class c
     cross join lateral (
       select x.grantee from aclexplode(c.relacl) x
       union
       select x.grantee from pg_attribute t cross join lateral aclexplode(t.attacl) x where t.attrelid = c.oid) a
     where c.oid = relation and a.grantee <> c.relowner
  loop
    execute format('revoke all on %s %s from %s cascade', case given.relkind when 'S' then 'sequence' else 'table' end,
      relation, given.grantee);
  end loop;
end
  $commitpost$;

-- What CREATE TABLE ... LIKE does not bring: see 0001.
create function {schema}.outbox_set_storage(table_name text, relation_name text) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  relation text := {schema}.outbox_relation(relation_name);
begin
  if table_name = 'outbox_delivery' then
    execute format('alter table %s set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05,
      autovacuum_vacuum_threshold = 2000)', relation);
    execute format('alter table %s alter column ordering_key set (n_distinct = -0.5)', relation);
  end if;
  execute format('alter table %s owner to %s', relation, (
    select c.relowner::regrole from pg_class c where c.oid = {schema}.outbox_relation(table_name)::regclass));
  perform {schema}.outbox_strip_rights(relation::regclass);
end
  $commitpost$;

create function {schema}.outbox_dress_partition(table_name text, partition_name text) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  perform {schema}.outbox_set_storage(table_name, partition_name);
  execute format('create trigger %I before insert or update or delete or truncate on %s
    for each statement execute function %s()', 'outbox_partition_closed', {schema}.outbox_relation(partition_name),
    {schema}.outbox_relation('outbox_refuse_partition'));
end
  $commitpost$;

create function {schema}.outbox_try_lock_partitions() returns boolean
  language sql volatile set search_path = pg_catalog, pg_temp
  as $commitpost$
    select pg_try_advisory_xact_lock(hashtextextended('commitpost partitions ' || {schema:literal}, 0))
  $commitpost$;

-- == made ahead ===================================================================================

-- CREATE TABLE ... PARTITION OF would lock everybody out; ATTACH PARTITION keeps out other changes of the table only.
create function {schema}.outbox_make_period(first_day integer, end_day integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  table_name text;
  partition_name text;
begin
  foreach table_name in array array['outbox_event', 'outbox_delivery'] loop
    partition_name := table_name || '_' || to_char({schema}.outbox_start_of(first_day) at time zone 'UTC', 'YYYYMMDD');
    execute format('create table %s (like %s including all excluding identity excluding indexes)',
      {schema}.outbox_relation(partition_name), {schema}.outbox_relation(table_name));
    perform {schema}.outbox_dress_partition(table_name, partition_name);
    execute format('alter table %s attach partition %s for values from (%s) to (%s)',
      {schema}.outbox_relation(table_name), {schema}.outbox_relation(partition_name),
      {schema}.outbox_bound(table_name, first_day), {schema}.outbox_bound(table_name, end_day));
  end loop;
  insert into {schema}.outbox_period (first_day, end_day) values (first_day, end_day);
end
  $commitpost$;

-- Takes the CHECKs of a conversion away that was not finished. They would refuse what is published from their day on.
create function {schema}.outbox_abandon_partitions() returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '250ms'
  as $commitpost$
begin
  perform 1 from {schema}.outbox_partitioning p where p.state = 'preparing' for update;
  if found then
    alter table {schema}.outbox_event drop constraint if exists outbox_event_until;
    alter table {schema}.outbox_delivery drop constraint if exists outbox_delivery_until;
    delete from {schema}.outbox_partitioning where state = 'preparing';
  end if;
end
  $commitpost$;

-- Sees to it that there is a partition for what is published in the next three periods, and in the next week at least, for
-- nobody can publish without one, and workers may be down; and that positions begin with the day. Called every few seconds by every worker: it reads two rows where there is nothing to do, and waits for nobody.
-- Returns how many periods it has made.
create function {schema}.outbox_tend_partitions() returns integer
  language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '1s'
  as $commitpost$
declare
  layout {schema}.outbox_partitioning;
  today integer := {schema}.outbox_day_of(clock_timestamp());
  needed_until integer;
  made_until integer;
  begun integer;
  made integer := 0;
begin
  select * into layout from {schema}.outbox_partitioning;
  if not found then
    return 0;
  end if;
  if layout.state = 'preparing' then
    if {schema}.outbox_start_of(layout.rest_until) < clock_timestamp() + interval '1 hour' then
      perform {schema}.outbox_abandon_partitions();
    end if;
    return 0;
  end if;
  select coalesce(max(p.end_day), layout.rest_until), max(p.first_day) filter (where p.first_day <= today)
    into made_until, begun from {schema}.outbox_period p;
  needed_until := today + greatest(3 * layout.every, 7);
  if made_until > needed_until
     and not exists (select 1 from {schema}.outbox_event_id_seq q where q.last_value < {schema}.outbox_first_position(begun) - 1)
     or not {schema}.outbox_try_lock_partitions() then
    return 0;
  end if;
  -- Read again: somebody else may have done it until just now.
  select coalesce(max(p.end_day), layout.rest_until) into made_until from {schema}.outbox_period p;
  -- After a long time in which nobody made any, that time becomes one period.
  if made_until < today - layout.every then
    perform {schema}.outbox_make_period(made_until, today - today % layout.every);
    made_until := today - today % layout.every;
    made := 1;
  end if;
  while made_until <= needed_until loop
    perform {schema}.outbox_make_period(made_until, made_until + layout.every);
    made_until := made_until + layout.every;
    made := made + 1;
  end loop;
  -- Only ever forward. Late is harmless: events of the new period then have deliveries in the partition of the old one.
  select max(p.first_day) into begun from {schema}.outbox_period p where p.first_day <= today;
  perform setval({schema}.outbox_relation('outbox_event_id_seq')::regclass, {schema}.outbox_first_position(begun) - 1)
     from {schema}.outbox_event_id_seq q where q.last_value < {schema}.outbox_first_position(begun) - 1;
  return made;
end
  $commitpost$;

-- == converting ===================================================================================

-- What would be left behind: these hang on a table and not on its name.
create function {schema}.outbox_refuse_unpartitionable() returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  tables regclass[] := array[{schema}.outbox_relation('outbox_event'), {schema}.outbox_relation('outbox_delivery')]::regclass[];
  found_one text;
begin
  select format('publication "%s" names %s', p.pubname, r.prrelid::regclass) into found_one
    from pg_publication_rel r join pg_publication p on p.oid = r.prpubid
   where r.prrelid = any (tables) and p.pubname <> {schema}.outbox_publication() limit 1;
  -- One of a whole schema, or of everything, would go on with partitions under names that its subscriber does not know.
  if found_one is null then
    select format('publication "%s" has %s', p.pubname, c.oid::regclass) into found_one
      from pg_class c join pg_publication_tables t on t.schemaname = c.relnamespace::regnamespace::name and t.tablename = c.relname
      join pg_publication p on p.pubname = t.pubname
     where c.oid = any (tables) and not p.pubviaroot limit 1;
  end if;
  if found_one is null then
    select format('constraint "%s" of %s refers to %s', k.conname, k.conrelid::regclass, k.confrelid::regclass) into found_one
      from pg_constraint k where k.contype = 'f' and (k.confrelid = any (tables) or k.conrelid = any (tables)) limit 1;
  end if;
  -- By its number and not by its name: it would read the rest only, and the rest could not be dropped.
  if found_one is null then
    select format('function %s is bound to %s', d.objid::regprocedure, c.oid::regclass) into found_one
      from pg_class c join pg_depend d on d.classid = 'pg_proc'::regclass
       and (d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid
            or d.refclassid = 'pg_type'::regclass and d.refobjid = c.reltype)
     where c.oid = any (tables) limit 1;
  end if;
  if found_one is null then
    select format('policy "%s" is on %s', p.polname, p.polrelid::regclass) into found_one
      from pg_policy p where p.polrelid = any (tables) limit 1;
  end if;
  if found_one is not null then
    raise exception 'cannot partition the tables: %', found_one using errcode = '55000',
      constraint = 'partition-hindered', detail = json_build_object('found', found_one),
      hint = 'Nothing was changed. Remove it, convert, and make it again for the partitioned table; a publication '
             'with publish_via_partition_root = true.';
  end if;
end
  $commitpost$;

-- Refuses ids and positions that would have no partition.
create function {schema}.outbox_refuse_later_than(day integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  first_id uuid := {schema}.outbox_id_at({schema}.outbox_start_of(day));
  later bigint;
  examples uuid[];
begin
  select count(*), (array_agg(e.event_id order by e.event_id))[:3] into later, examples
    from {schema}.outbox_event e where e.event_id >= first_id;
  if later > 0 then
    raise exception 'cannot partition the tables: % event(s) have an id that is no UUID version 7 of the past, such as %',
      later, array_to_string(examples, ', ') using errcode = '55000',
      constraint = 'partition-ids', detail = json_build_object('events', later, 'examples', array_to_string(examples, ', ')),
      hint = 'Nothing was changed. Partitions divide events by the time in their ids. Convert once retention has '
             'removed these.';
  end if;
  perform 1 from {schema}.outbox_delivery d where d.id >= {schema}.outbox_first_position(day);
  if found then
    raise exception 'cannot partition the tables: there are deliveries from position % on',
      {schema}.outbox_first_position(day) using errcode = '55000', constraint = 'partition-positions',
      detail = json_build_object('position', {schema}.outbox_first_position(day)), hint = 'Nothing was changed.';
  end if;
end
  $commitpost$;

-- The first step: says where the first period begins, and lets nothing later in. Where nothing was published yet that is
-- the present one, and nothing has to be kept out. Returns whether there is more to do.
create function {schema}.outbox_prepare_partitions(days integer) returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '250ms'
  as $commitpost$
declare
  layout {schema}.outbox_partitioning;
  today integer := {schema}.outbox_day_of(clock_timestamp());
begin
  if days is null or days not between 1 and 90 then
    raise exception 'a period has 1 to 90 days' using errcode = '22023';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('commitpost partitions ' || {schema:literal}, 0));
  select * into layout from {schema}.outbox_partitioning;
  if layout.state = 'partitioned' then
    update {schema}.outbox_partitioning set every = days, changed_at = clock_timestamp() where every <> days;
    return false;
  end if;
  perform {schema}.outbox_refuse_unpartitionable();
  -- What one that was interrupted had begun is as good, unless its day is near.
  if layout.state = 'preparing' and layout.every = days and layout.rest_until > today + 1 then
    perform {schema}.outbox_refuse_later_than(layout.rest_until);
    return true;
  end if;
  perform {schema}.outbox_abandon_partitions();
  if not exists (select 1 from {schema}.outbox_event) then
    insert into {schema}.outbox_partitioning (every, state, rest_until) values (days, 'preparing', today - today % days);
    return true;
  end if;
  -- Ids are made by clocks of others, and this may take hours.
  layout.rest_until := (today + 2 + days - 1) / days * days;
  perform {schema}.outbox_refuse_later_than(layout.rest_until);
  insert into {schema}.outbox_partitioning (every, state, rest_until) values (days, 'preparing', layout.rest_until);
  execute format('alter table %s add constraint outbox_event_until check (event_id < %s) not valid',
    {schema}.outbox_relation('outbox_event'), {schema}.outbox_bound('outbox_event', layout.rest_until));
  execute format('alter table %s add constraint outbox_delivery_until check (id < %s) not valid',
    {schema}.outbox_relation('outbox_delivery'), {schema}.outbox_bound('outbox_delivery', layout.rest_until));
  return true;
end
  $commitpost$;

-- The second step, for each table: reads all of it while everybody goes on.
create function {schema}.outbox_validate_partitions(table_name text) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  perform 1 from pg_constraint k
    where k.conrelid = {schema}.outbox_relation(table_name)::regclass and k.conname = table_name || '_until'
      and not k.convalidated;
  if found then
    execute format('alter table %s validate constraint %I', {schema}.outbox_relation(table_name), table_name || '_until');
  end if;
end
  $commitpost$;

-- Statements that give the rights on a relation and its columns to whoever has them.
create function {schema}.outbox_grants_on(relation regclass) returns text[]
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select coalesce(array_agg(format('grant %s%s on %s %s to %s%s', a.privilege_type, a.column_name,
             case a.relkind when 'S' then 'sequence' else 'table' end, relation::text,
             case a.grantee when 0 then 'public' else a.grantee::regrole::text end,
             case when a.is_grantable then ' with grant option' else '' end)), '{}')
      from (
        select x.privilege_type, '' as column_name, x.grantee, x.is_grantable, c.relkind
          from pg_class c cross join lateral aclexplode(c.relacl) x where c.oid = relation and x.grantee <> c.relowner
        union all
        select x.privilege_type, format(' (%I)', t.attname), x.grantee, x.is_grantable, c.relkind
          from pg_class c join pg_attribute t on t.attrelid = c.oid and not t.attisdropped
         cross join lateral aclexplode(t.attacl) x where c.oid = relation and x.grantee <> c.relowner) a
  $commitpost$;

-- The views that read a table, each as the statements that make it and give the rights on it.
create function {schema}.outbox_views_of(relation regclass, out view_name text, out definition text[]) returns setof record
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select v.oid::regclass::text,
           array[format('create view %s %s as %s', v.oid::regclass,
                        'with (' || nullif(array_to_string(v.reloptions, ', '), '') || ')', pg_get_viewdef(v.oid)),
                 format('alter view %s owner to %s', v.oid::regclass, v.relowner::regrole)]
           || {schema}.outbox_grants_on(v.oid)
      from (select distinct r.ev_class from pg_depend d join pg_rewrite r on r.oid = d.objid
             where d.classid = 'pg_rewrite'::regclass and d.refobjid = relation and d.refclassid = 'pg_class'::regclass) u
      join pg_class v on v.oid = u.ev_class and v.oid <> relation
  $commitpost$;

-- Keys, indexes, triggers and rights of a table, as the statements that make them on another of its name. Keys first.
create function {schema}.outbox_parts_of(relation regclass) returns text[]
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select array(select format('alter table %s add constraint %I %s%s', relation, k.conname, pg_get_constraintdef(k.oid),
                          ' with (' || array_to_string(c.reloptions, ', ') || ')')
                   from pg_constraint k join pg_class c on c.oid = k.conindid where k.conrelid = relation and k.contype in ('p', 'u'))
        || array(select pg_get_indexdef(x.indexrelid) from pg_index x
                  where x.indrelid = relation and not exists (
                    select 1 from pg_constraint k where k.conindid = x.indexrelid and k.contype in ('p', 'u')))
        || array(select pg_get_triggerdef(t.oid) from pg_trigger t where t.tgrelid = relation and not t.tgisinternal)
        || array(select format('alter table %s %s trigger %I', relation, case t.tgenabled when 'D' then 'disable'
                          when 'A' then 'enable always' else 'enable replica' end, t.tgname)
                   from pg_trigger t where t.tgrelid = relation and not t.tgisinternal and t.tgenabled <> 'O')
        || {schema}.outbox_grants_on(relation)
  $commitpost$;

-- Makes a table the rest of a partitioned one of the same name. The caller has locked it.
create function {schema}.outbox_put_above(table_name text, day integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  whole text := {schema}.outbox_relation(table_name);
  rest_name text := table_name || '_rest';
  rest text := {schema}.outbox_relation(table_name || '_rest');
  old regclass := whole::regclass;
  statements text[] := {schema}.outbox_parts_of(old);
  each_view record;
  part record;
  statement text;
begin
  for each_view in select * from {schema}.outbox_views_of(old) loop
    statements := statements || each_view.definition;
    execute 'drop view ' || each_view.view_name;
  end loop;
  for part in select t.tgname as name from pg_trigger t where t.tgrelid = old and not t.tgisinternal loop
    execute format('drop trigger %I on %s', part.name, whole);
  end loop;
  for part in select c.oid::regclass as index, c.relname as name from pg_index x join pg_class c on c.oid = x.indexrelid
               where x.indrelid = old loop
    execute format('alter index %s rename to %I', part.index, case when part.name like table_name || '\_%'
      then rest_name || substr(part.name, length(table_name) + 1) else part.name || '_rest' end);
  end loop;
  execute format('alter table %s rename to %I', whole, rest_name);
  execute format('create table %s (like %s including all excluding identity excluding indexes) partition by range (%I)',
    whole, rest, case table_name when 'outbox_event' then 'event_id' else 'id' end);
  execute format('alter table %s drop constraint if exists %I', whole, table_name || '_until');
  execute format('alter table %s owner to %s', whole, (select c.relowner::regrole from pg_class c where c.oid = old));
  perform {schema}.outbox_strip_rights(whole::regclass);
  if table_name = 'outbox_delivery' then
    execute format('alter table %s alter column ordering_key set (n_distinct = -0.5, n_distinct_inherited = -0.5)', whole);
  end if;
  foreach statement in array statements loop
    execute statement;
  end loop;
  execute format('alter table %s attach partition %s for values from (minvalue) to (%s)', whole, rest,
    {schema}.outbox_bound(table_name, day));
  execute format('alter table %s drop constraint if exists %I', rest, table_name || '_until');
  perform {schema}.outbox_dress_partition(table_name, rest_name);
end
  $commitpost$;

-- Puts other tables in the place of both. The identity of the positions goes on where it was, as one of the new table: a
-- partition may have none of its own.
create function {schema}.outbox_exchange_tables(day integer, is_partitioned boolean) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  last bigint := (select q.last_value - (not q.is_called)::integer from {schema}.outbox_event_id_seq q);
  grants text[] := {schema}.outbox_grants_on({schema}.outbox_relation('outbox_event_id_seq')::regclass);
  table_name text;
  statement text;
begin
  alter table {schema}.outbox_event alter column id drop identity;
  foreach table_name in array array['outbox_event', 'outbox_delivery'] loop
    if is_partitioned then
      perform {schema}.outbox_put_above(table_name, day);
    else
      perform {schema}.outbox_put_together(table_name);
    end if;
  end loop;
  execute format('alter table %s alter column id add generated always as identity (sequence name %s start with %s)',
    {schema}.outbox_relation('outbox_event'), {schema}.outbox_relation('outbox_event_id_seq'), last + 1);
  perform {schema}.outbox_strip_rights({schema}.outbox_relation('outbox_event_id_seq')::regclass);
  foreach statement in array grants loop
    execute statement;
  end loop;
  perform {schema}.outbox_put_in_publication();
end
  $commitpost$;

-- The third step, in which everybody waits: the tables become the rest of partitioned ones. Takes no longer for large
-- tables than for small ones. Returns false where the tables have to be prepared again.
create function {schema}.outbox_convert_to_partitions() returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '250ms'
  as $commitpost$
declare
  layout {schema}.outbox_partitioning;
begin
  perform pg_advisory_xact_lock(hashtextextended('commitpost partitions ' || {schema:literal}, 0));
  select * into layout from {schema}.outbox_partitioning;
  if layout.state is distinct from 'preparing' then
    return layout.state is not null;
  end if;
  lock table {schema}.outbox_event, {schema}.outbox_delivery in access exclusive mode;
  perform 1 from pg_constraint k
    where k.conrelid = {schema}.outbox_relation('outbox_delivery')::regclass and k.conname = 'outbox_delivery_until';
  if not found and exists (select 1 from {schema}.outbox_event) then
    -- It was empty until just now.
    delete from {schema}.outbox_partitioning;
    return false;
  end if;
  perform {schema}.outbox_exchange_tables(day => layout.rest_until, is_partitioned => true);
  update {schema}.outbox_partitioning set state = 'partitioned', changed_at = clock_timestamp();
  -- Else there is time to make them when nobody waits.
  if layout.rest_until <= {schema}.outbox_day_of(clock_timestamp()) then
    perform {schema}.outbox_tend_partitions();
  end if;
  return true;
end
  $commitpost$;

-- == going back ===================================================================================

-- All columns that are written, which those that are generated are not.
create function {schema}.outbox_columns_of(table_name text) returns text
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
     where a.attrelid = {schema}.outbox_relation(table_name)::regclass and a.attnum > 0
       and not a.attisdropped and a.attgenerated = ''
  $commitpost$;

-- Makes a partitioned table a plain one of the same name. The caller has locked it.
create function {schema}.outbox_put_together(table_name text) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  whole text := {schema}.outbox_relation(table_name);
  plain text := {schema}.outbox_relation(table_name || '_plain');
  columns text := {schema}.outbox_columns_of(table_name);
  statements text[] := {schema}.outbox_parts_of(whole::regclass);
  each_view record;
  statement text;
begin
  for each_view in select * from {schema}.outbox_views_of(whole::regclass) loop
    statements := statements || each_view.definition;
    execute 'drop view ' || each_view.view_name;
  end loop;
  execute format('create table %s (like %s including all excluding identity excluding indexes)', plain, whole);
  perform {schema}.outbox_set_storage(table_name, table_name || '_plain');
  execute format('insert into %s (%s) select %s from %s', plain, columns, columns, whole);
  execute format('drop table %s', whole);
  execute format('alter table %s rename to %I', plain, table_name);
  foreach statement in array statements loop
    execute statement;
  end loop;
end
  $commitpost$;

-- Copies everything back to plain tables. Everybody waits until it is over.
create function {schema}.outbox_unpartition() returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  perform pg_advisory_xact_lock(hashtextextended('commitpost partitions ' || {schema:literal}, 0));
  perform 1 from {schema}.outbox_partitioning p where p.state = 'partitioned';
  if not found then
    return false;
  end if;
  perform {schema}.outbox_refuse_unpartitionable();
  lock table {schema}.outbox_event, {schema}.outbox_delivery in access exclusive mode;
  perform {schema}.outbox_exchange_tables(day => null, is_partitioned => false);
  delete from {schema}.outbox_period;
  delete from {schema}.outbox_partitioning;
  return true;
end
  $commitpost$;

-- == dropped ======================================================================================

-- What was found about a period before anybody has to wait: which of its events stay. One for each run.
create table {schema}.outbox_period_survey (
  run_id      bigint      primary key,
  -- The rest and the periods up to this day are looked at together.
  end_day     integer     not null,
  -- Where the rest ended then: another run may have moved it since.
  rest_until  integer     not null,
  -- False: more stays than can be moved while others wait, or the lock was not to be had. The run goes row by row.
  may_drop    boolean     not null,
  -- What was published since is not in the survey, and who registered since may want all of it.
  snapshot    pg_snapshot not null,
  registered  bigint      not null,
  -- How many go, and which stay.
  events      bigint      not null,
  kept        uuid[]      not null,
  -- Where deliveries stay: of events that do, of events of later periods, and of none.
  positions   bigint[]    not null,
  tries       integer     not null default 0
);

-- Up to which days a run may drop, best first: all periods that end before its cutoff, or the oldest alone. The rest alone
-- only where it is worth it. Empty where there is nothing to drop.
create function {schema}.outbox_droppable_days(cutoff timestamptz) returns integer[]
  language plpgsql stable set search_path = pg_catalog, pg_temp set enable_seqscan = off
  as $commitpost$
declare
  oldest integer;
  newest integer;
  rest_until integer := (select p.rest_until from {schema}.outbox_partitioning p where p.state = 'partitioned');
begin
  if rest_until is null or {schema}.outbox_start_of(rest_until) > cutoff then
    return '{}';
  end if;
  select min(p.end_day), max(p.end_day) into oldest, newest from {schema}.outbox_period p
   where {schema}.outbox_start_of(p.end_day) <= cutoff;
  if oldest is not null then
    return case oldest when newest then array[oldest] else array[newest, oldest] end;
  end if;
  perform 1 from {schema}.outbox_event e
    where e.event_id < {schema}.outbox_id_at({schema}.outbox_start_of(rest_until)) offset 10000 limit 1;
  return case when found then array[rest_until] else '{}' end;
end
  $commitpost$;

-- Which events before a day somebody may still need, by the rules of outbox_removable and of the run; null where they are
-- more than 10,000. An amended event and the one it stands in for are left to the run itself. What a run moves to an
-- archive stays until it has done so: a period is dropped once it is empty.
create function {schema}.outbox_survivors(run {schema}.outbox_retention_run, end_day integer) returns uuid[]
  language plpgsql stable set search_path = pg_catalog, pg_temp set work_mem = '64MB' set jit = off
  as $commitpost$
declare
  most integer := 10001;
  last_id uuid := {schema}.outbox_id_at({schema}.outbox_start_of(end_day));
  last_position bigint := {schema}.outbox_first_position(end_day);
  needed bigint[];
  named uuid[];
  survivors uuid[];
  unlike text[] := array(select jsonb_array_elements_text(run.settings -> 'streamUnlike'));
  -- The oldest transaction that somebody who reads the log may not have come to.
  unread xid8 := (select pg_snapshot_xmin(t.snapshot) from {schema}.outbox_stream t
                    join {schema}.outbox_subscription s on s.id = t.subscription_id and s.state <> 'retired'
                   order by 1 limit 1);
begin
  needed := array(select d.id from {schema}.outbox_delivery d
                   where d.id < last_position and run.archive_id is null
                     and (d.status <> 'DONE' and not {schema}.outbox_is_buried(d.status, d.subscription_id, d.event_id)
                          or coalesce(d.processed_at, d.updated_at) >= run.cutoff)
                   limit most);
  named := array(select u.event_id from {schema}.outbox_unmatched u
                  where u.event_id < last_id and u.reported_at is null limit most)
        || array(select l.event_id from {schema}.outbox_dead_letter l
                  where l.event_id < last_id and not l.resolved limit most)
        || array(select v.event_id from {schema}.outbox_amendment a
                  cross join lateral (values (a.event_id), (a.amended_from)) v(event_id) where v.event_id < last_id limit most);
  survivors := array(
    select e.event_id from {schema}.outbox_event e
     where e.event_id < last_id
       and (run.archive_id is not null
            or e.id >= last_position
            or e.created_at >= run.cutoff
            or e.xid >= unread
            or not e.stream like (run.settings ->> 'streamLike')
            or e.stream like any (unlike)
            or (run.settings -> 'mask' <> 'null' and not run.settings -> 'mask' ? e.event_type)
            or e.id in (select unnest(needed))
            or e.event_id in (select unnest(named))
            or ((run.settings ->> 'requireExport')::boolean
                and not {schema}.outbox_is_exported(e.stream, e.id, e.event_id)))
     limit most);
  return case when greatest(cardinality(needed), cardinality(named), cardinality(survivors)) < most then survivors end;
end
  $commitpost$;

-- The positions before a day whose deliveries stay, with those of the events that do; null where they are too many to be
-- moved while everybody waits.
create function {schema}.outbox_staying_positions(kept uuid[], end_day integer) returns bigint[]
  language plpgsql stable set search_path = pg_catalog, pg_temp set work_mem = '64MB' set jit = off
  as $commitpost$
declare
  most integer := 100001;
  last_id uuid := {schema}.outbox_id_at({schema}.outbox_start_of(end_day));
  positions bigint[];
begin
  positions := array(
    select d.id from {schema}.outbox_delivery d
      left join {schema}.outbox_event e on e.event_id = d.event_id and e.event_id < last_id
     where d.id < {schema}.outbox_first_position(end_day) and (e.event_id is null or e.event_id in (select unnest(kept)))
     limit most);
  return case when cardinality(positions) < most then array(select distinct p from unnest(positions) p) end;
end
  $commitpost$;

-- What stays of all that is before a day, with may_drop saying whether that is little enough.
create function {schema}.outbox_survey_until(run {schema}.outbox_retention_run, day integer)
  returns {schema}.outbox_period_survey
  language plpgsql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  survey {schema}.outbox_period_survey;
  last_id uuid := {schema}.outbox_id_at({schema}.outbox_start_of(day));
begin
  survey.run_id := run.id;
  survey.end_day := day;
  survey.rest_until := (select p.rest_until from {schema}.outbox_partitioning p);
  survey.tries := 0;
  survey.snapshot := pg_current_snapshot();
  survey.kept := {schema}.outbox_survivors(run, day);
  if survey.kept is not null then
    survey.positions := {schema}.outbox_staying_positions(survey.kept, day);
    survey.events := (
      select count(*) from {schema}.outbox_event e
       where e.event_id < last_id and e.event_id not in (select unnest(survey.kept)));
  end if;
  survey.may_drop := survey.positions is not null and (select count(*) from (
    select 1 from {schema}.outbox_unmatched u where u.event_id < last_id limit 10001) u) <= 10000;
  if not survey.may_drop then
    survey.events := 0;
    survey.kept := '{}';
    survey.positions := '{}';
  end if;
  return survey;
end
  $commitpost$;

-- False also for an id that this server has not come to, from a restored backup.
create function {schema}.outbox_is_under_way(xid xid8) returns boolean
  language plpgsql volatile set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  return coalesce(pg_xact_status(xid) = 'in progress', false);
exception when invalid_parameter_value then
  return false;
end
  $commitpost$;

-- Looks whether a run can drop periods, without a lock and without a transaction id until the end: this may take a while,
-- and nothing waits for it. Cheap where there is nothing to drop.
create function {schema}.outbox_survey_period(run_id bigint) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  run {schema}.outbox_retention_run;
  survey {schema}.outbox_period_survey;
  day integer;
  registered bigint;
begin
  select * into run from {schema}.outbox_retention_run r
   where r.id = outbox_survey_period.run_id and r.finished_at is null and r.last_position = 0;
  if not found or cardinality({schema}.outbox_droppable_days(run.cutoff)) = 0
     or exists (select 1 from {schema}.outbox_period_survey s where s.run_id = run.id)
     or not pg_try_advisory_xact_lock(hashtextextended('commitpost survey ' || {schema:literal}, 0)) then
    return;
  end if;
  -- First who registered last, then what is there: so nobody falls between the two. One who has said so and has not
  -- committed is not seen, nor would he be missed later.
  registered := (select r.last_value from {schema}.outbox_registry_xid r);
  if {schema}.outbox_is_under_way(registered::text::xid8)
     or exists (select 1 from {schema}.outbox_subscription s where s.state = 'joining') then
    return;
  end if;
  foreach day in array {schema}.outbox_droppable_days(run.cutoff) loop
    survey := {schema}.outbox_survey_until(run, day);
    survey.registered := registered;
    exit when survey.may_drop;
  end loop;
  -- Of runs that are over none is needed.
  delete from {schema}.outbox_period_survey s
   where not exists (select 1 from {schema}.outbox_retention_run r where r.id = s.run_id and r.finished_at is null);
  insert into {schema}.outbox_period_survey select survey.* on conflict do nothing;
end
  $commitpost$;

-- Copies rows of a table to the one that is to be its rest.
create function {schema}.outbox_move_to_rest(table_name text, condition text, ids anyarray, day integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off
  as $commitpost$
declare
  columns text := {schema}.outbox_columns_of(table_name);
begin
  execute format('insert into %s (%s) select %s from %s t where t.%s and t.%I < %s',
    {schema}.outbox_relation(table_name || '_rest_next'), columns, columns, {schema}.outbox_relation(table_name),
    condition, case table_name when 'outbox_event' then 'event_id' else 'id' end, {schema}.outbox_bound(table_name, day))
    using ids;
end
  $commitpost$;

-- Puts the next rest in the place of the present one and of the periods up to that day.
create function {schema}.outbox_exchange_rest(table_name text, day integer) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  whole text := {schema}.outbox_relation(table_name);
  gone text;
begin
  for gone in
    select table_name || '_rest'
    union all
    select table_name || '_' || to_char({schema}.outbox_start_of(p.first_day) at time zone 'UTC', 'YYYYMMDD')
      from {schema}.outbox_period p where p.end_day <= day
  loop
    execute format('alter table %s detach partition %s', whole, {schema}.outbox_relation(gone));
    execute format('drop table %s', {schema}.outbox_relation(gone));
  end loop;
  execute format('alter table %s rename to %I', {schema}.outbox_relation(table_name || '_rest_next'), table_name || '_rest');
  perform {schema}.outbox_dress_partition(table_name, table_name || '_rest');
  execute format('alter table %s attach partition %s for values from (minvalue) to (%s)', whole,
    {schema}.outbox_relation(table_name || '_rest'), {schema}.outbox_bound(table_name, day));
end
  $commitpost$;

-- What was published with an id or a position before a day by those that a snapshot does not see. By their ids, which an
-- index has: since the oldest of them millions of others may have been published. Ids that this server has not come to
-- are another one's, from a restored backup: what has them was there before.
create function {schema}.outbox_published_since(
    snapshot pg_snapshot, day integer, out event_ids uuid[], out positions bigint[])
  language sql stable set search_path = pg_catalog, pg_temp set enable_seqscan = off
  as $commitpost$
    select coalesce(array_agg(e.event_id), '{}'), coalesce(array_agg(e.id), '{}') from {schema}.outbox_event e
     where (e.xid = any (array(select pg_snapshot_xip(snapshot)))
            or e.xid >= pg_snapshot_xmax(snapshot) and e.xid < pg_snapshot_xmax(pg_current_snapshot()))
       and (e.event_id < {schema}.outbox_id_at({schema}.outbox_start_of(day)) or e.id < {schema}.outbox_first_position(day))
  $commitpost$;

-- Drops what was surveyed. The caller has the lock of the registry, and nobody joins. What is kept of events is copied
-- before anybody has to wait: they never change; so is what was published since the survey. Then, with everybody shut out,
-- what was published since that, and the deliveries as they are now. The lock is one of the whole tables: partitions are
-- reached through them only, and a vacuum of one is not waited for. Returns how many events are gone.
create function {schema}.outbox_drop_period(survey {schema}.outbox_period_survey) returns bigint
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  table_name text;
  kept uuid[] := survey.kept;
  late record;
  caught_up pg_snapshot;
  positions bigint[] := survey.positions;
begin
  foreach table_name in array array['outbox_event', 'outbox_delivery'] loop
    execute format('create table %s (like %s including all excluding identity excluding indexes)',
      {schema}.outbox_relation(table_name || '_rest_next'), {schema}.outbox_relation(table_name));
  end loop;
  -- Taken before the look, so that nothing falls between the two; what both see is moved once.
  caught_up := pg_current_snapshot();
  select * into late from {schema}.outbox_published_since(survey.snapshot, survey.end_day);
  kept := array(select unnest(kept) union select unnest(late.event_ids));
  positions := positions || late.positions;
  perform {schema}.outbox_move_to_rest('outbox_event', 'event_id = any ($1)', kept, survey.end_day);
  lock table only {schema}.outbox_event, only {schema}.outbox_delivery in access exclusive mode;
  select * into late from {schema}.outbox_published_since(caught_up, survey.end_day);
  positions := positions || late.positions;
  perform {schema}.outbox_move_to_rest('outbox_event', 'event_id = any ($1)',
    array(select unnest(late.event_ids) except select unnest(kept)), survey.end_day);
  perform {schema}.outbox_move_to_rest('outbox_delivery', 'id = any ($1)', positions, survey.end_day);
  delete from {schema}.outbox_unmatched u
   where u.event_id < {schema}.outbox_id_at({schema}.outbox_start_of(survey.end_day))
     and u.event_id not in (select unnest(kept || late.event_ids));
  perform {schema}.outbox_exchange_rest('outbox_event', survey.end_day);
  perform {schema}.outbox_exchange_rest('outbox_delivery', survey.end_day);
  delete from {schema}.outbox_period p where p.end_day <= survey.end_day;
  update {schema}.outbox_partitioning set rest_until = survey.end_day, changed_at = clock_timestamp();
  return survey.events;
end
  $commitpost$;

-- Before a run goes by rows, it drops whole periods, one at a step. Null where there are none (left).
create function {schema}.outbox_drop_next_period(run {schema}.outbox_retention_run, out dropped bigint, out until timestamptz)
  language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
  as $commitpost$
declare
  survey {schema}.outbox_period_survey;
begin
  select * into survey from {schema}.outbox_period_survey s where s.run_id = run.id for update;
  if not found then
    perform {schema}.outbox_survey_period(run.id);
    select * into survey from {schema}.outbox_period_survey s where s.run_id = run.id for update;
    if not found then
      dropped := case when cardinality({schema}.outbox_droppable_days(run.cutoff)) > 0 then -1 end;
      return;
    end if;
  end if;
  if not survey.may_drop then
    return;
  end if;
  dropped := -1;
  -- Whoever has registered since may have taken what was seen to be done with: it is looked at again. So is it where
  -- another run has dropped it, and where the survey is another server's, from a restored backup.
  if survey.registered is distinct from (select r.last_value from {schema}.outbox_registry_xid r)
     or survey.rest_until is distinct from (select p.rest_until from {schema}.outbox_partitioning p)
     or pg_snapshot_xmax(survey.snapshot) > pg_snapshot_xmax(pg_current_snapshot()) then
    delete from {schema}.outbox_period_survey s where s.run_id = run.id;
    return;
  end if;
  if not {schema}.outbox_try_lock_partitions() then
    return;
  end if;
  begin
    dropped := {schema}.outbox_drop_period(survey);
    until := {schema}.outbox_start_of(survey.end_day);
    delete from {schema}.outbox_period_survey s where s.run_id = run.id;
  exception when lock_not_available or deadlock_detected then
    dropped := -1;
    update {schema}.outbox_period_survey s set tries = s.tries + 1, may_drop = s.tries < 30 where s.run_id = run.id;
  when dependent_objects_still_exist then
    -- Somebody has made something of a partition, such as a view.
    dropped := -1;
    update {schema}.outbox_period_survey s set may_drop = false where s.run_id = run.id;
  end;
end
  $commitpost$;

-- == who may call what ============================================================================

-- As in 0002: functions are open to everybody unless that is taken back.
revoke all on function
  {schema}.outbox_day_of(timestamptz), {schema}.outbox_start_of(integer), {schema}.outbox_first_position(integer),
  {schema}.outbox_bound(text, integer), {schema}.outbox_relation(text), {schema}.outbox_refuse_partition(),
  {schema}.outbox_dress_partition(text, text), {schema}.outbox_try_lock_partitions(),
  {schema}.outbox_make_period(integer, integer), {schema}.outbox_abandon_partitions(), {schema}.outbox_tend_partitions(),
  {schema}.outbox_refuse_unpartitionable(), {schema}.outbox_refuse_later_than(integer),
  {schema}.outbox_prepare_partitions(integer), {schema}.outbox_validate_partitions(text),
  {schema}.outbox_grants_on(regclass), {schema}.outbox_views_of(regclass), {schema}.outbox_parts_of(regclass),
  {schema}.outbox_put_above(text, integer), {schema}.outbox_exchange_tables(integer, boolean), {schema}.outbox_convert_to_partitions(),
  {schema}.outbox_strip_rights(regclass), {schema}.outbox_is_under_way(xid8),
  {schema}.outbox_published_since(pg_snapshot, integer),
  {schema}.outbox_set_storage(text, text), {schema}.outbox_columns_of(text), {schema}.outbox_put_together(text),
  {schema}.outbox_unpartition(),
  {schema}.outbox_droppable_days(timestamptz), {schema}.outbox_survivors({schema}.outbox_retention_run, integer),
  {schema}.outbox_staying_positions(uuid[], integer), {schema}.outbox_survey_period(bigint),
  {schema}.outbox_survey_until({schema}.outbox_retention_run, integer),
  {schema}.outbox_move_to_rest(text, text, anyarray, integer), {schema}.outbox_exchange_rest(text, integer),
  {schema}.outbox_drop_period({schema}.outbox_period_survey),
  {schema}.outbox_drop_next_period({schema}.outbox_retention_run)
  from public;
