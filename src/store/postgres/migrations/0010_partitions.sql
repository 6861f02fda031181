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

-- What a partition has of its own and CREATE TABLE ... LIKE does not bring.
create function {schema}.outbox_dress_partition(table_name text, partition_name text) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  partition text := {schema}.outbox_relation(partition_name);
begin
  execute format('create trigger %I before insert or update or delete or truncate on %s
    for each statement execute function %s()', 'outbox_partition_closed', partition,
    {schema}.outbox_relation('outbox_refuse_partition'));
  if table_name = 'outbox_delivery' then
    execute format('alter table %s set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05,
      autovacuum_vacuum_threshold = 2000)', partition);
    execute format('alter table %s alter column ordering_key set (n_distinct = -0.5)', partition);
  end if;
  execute format('alter table %s owner to %s', partition, (
    select c.relowner::regrole from pg_class c where c.oid = {schema}.outbox_relation(table_name)::regclass));
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

-- Sees to it that there is a partition for what is published in the next three periods, and that positions begin with the
-- day. Called every few seconds by every worker: it reads two rows where there is nothing to do, and waits for nobody.
-- Returns how many periods it has made.
create function {schema}.outbox_tend_partitions() returns integer
  language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '1s'
  as $commitpost$
declare
  layout {schema}.outbox_partitioning;
  today integer := {schema}.outbox_day_of(clock_timestamp());
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
  if made_until > today + 3 * layout.every
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
  while made_until <= today + 3 * layout.every loop
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
    from pg_publication_rel r join pg_publication p on p.oid = r.prpubid where r.prrelid = any (tables) limit 1;
  if found_one is null then
    select format('constraint "%s" of %s refers to %s', k.conname, k.conrelid::regclass, k.confrelid::regclass) into found_one
      from pg_constraint k where k.contype = 'f' and k.confrelid = any (tables) limit 1;
  end if;
  if found_one is null then
    select format('policy "%s" is on %s', p.polname, p.polrelid::regclass) into found_one
      from pg_policy p where p.polrelid = any (tables) limit 1;
  end if;
  if found_one is not null then
    raise exception 'cannot partition the tables: %', found_one using errcode = '55000',
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
      hint = 'Nothing was changed. Partitions divide events by the time in their ids. Convert once retention has '
             'removed these.';
  end if;
  perform 1 from {schema}.outbox_delivery d where d.id >= {schema}.outbox_first_position(day);
  if found then
    raise exception 'cannot partition the tables: there are deliveries from position % on',
      {schema}.outbox_first_position(day) using errcode = '55000', hint = 'Nothing was changed.';
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
  perform 1 from {schema}.outbox_event;
  if not found then
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
    select array(select format('alter table %s add constraint %I %s', relation, k.conname, pg_get_constraintdef(k.oid))
                   from pg_constraint k where k.conrelid = relation and k.contype in ('p', 'u'))
        || array(select pg_get_indexdef(x.indexrelid) from pg_index x
                  where x.indrelid = relation and not exists (
                    select 1 from pg_constraint k where k.conindid = x.indexrelid and k.contype in ('p', 'u')))
        || array(select pg_get_triggerdef(t.oid) from pg_trigger t where t.tgrelid = relation and not t.tgisinternal)
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
  if table_name = 'outbox_delivery' then
    execute format('alter table %s alter column ordering_key set (n_distinct = -0.5, n_distinct_inherited = -0.5)', whole);
  end if;
  foreach statement in array statements loop
    execute statement;
  end loop;
  execute format('alter table %s attach partition %s for values from (minvalue) to (%s)', whole, rest,
    {schema}.outbox_bound(table_name, day));
  execute format('alter table %s drop constraint if exists %I', rest, table_name || '_until');
  for part in select distinct a.grantee from pg_class c cross join lateral aclexplode(c.relacl) a
               where c.oid = old and a.grantee <> c.relowner
              union
              select a.grantee from pg_attribute t cross join lateral aclexplode(t.attacl) a where t.attrelid = old loop
    execute format('revoke all on %s from %s', rest,
      case part.grantee when 0 then 'public' else part.grantee::regrole::text end);
  end loop;
  perform {schema}.outbox_dress_partition(table_name, rest_name);
end
  $commitpost$;

-- The identity of the positions goes on where it was, as one of the partitioned table: a partition may have none.
create function {schema}.outbox_take_identity(out last bigint, out grants text[])
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  select q.last_value - (not q.is_called)::integer into last from {schema}.outbox_event_id_seq q;
  grants := {schema}.outbox_grants_on({schema}.outbox_relation('outbox_event_id_seq')::regclass);
  alter table {schema}.outbox_event alter column id drop identity;
end
  $commitpost$;

-- The third step, in which everybody waits: the tables become the rest of partitioned ones. Takes no longer for large
-- tables than for small ones. Returns false where the tables have to be prepared again.
create function {schema}.outbox_convert_to_partitions() returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '250ms'
  as $commitpost$
declare
  layout {schema}.outbox_partitioning;
  identity record;
  statement text;
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
  select * into identity from {schema}.outbox_take_identity();
  perform {schema}.outbox_put_above('outbox_event', layout.rest_until);
  perform {schema}.outbox_put_above('outbox_delivery', layout.rest_until);
  execute format('alter table %s alter column id add generated always as identity (sequence name %s start with %s)',
    {schema}.outbox_relation('outbox_event'), {schema}.outbox_relation('outbox_event_id_seq'), identity.last + 1);
  foreach statement in array identity.grants loop
    execute statement;
  end loop;
  update {schema}.outbox_partitioning set state = 'partitioned', changed_at = clock_timestamp();
  -- Else there is time to make them when nobody waits.
  if layout.rest_until <= {schema}.outbox_day_of(clock_timestamp()) then
    perform {schema}.outbox_tend_partitions();
  end if;
  return true;
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
  {schema}.outbox_put_above(text, integer), {schema}.outbox_take_identity(), {schema}.outbox_convert_to_partitions()
  from public;
