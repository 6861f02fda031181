-- What proves that nothing is lost: since when a subscription wants what, and an operator log that nobody can change
-- unseen.

-- == what a subscription is meant to have =========================================================

-- outbox_subscription says what is taken now. What was taken before it was widened, and since when, is kept here: without
-- it nobody could tell an event that was lost from one that was not wanted yet.
create table {schema}.outbox_scope (
  id              bigint      generated always as identity primary key,
  subscription_id integer     not null,
  stream_like     text[],
  event_types     text[],
  start_from      text        not null,
  start_at        timestamptz,
  -- The events of transactions that had not ended by it are wanted, and those that start_from adds. Null until it is
  -- taken: see serve-on.ts.
  began_snapshot  pg_snapshot,
  began_at        timestamptz not null default clock_timestamp(),
  -- Taken when the subscription was retired: an event that had not ended by it may or may not have a delivery.
  ended_snapshot  pg_snapshot,
  -- It was retired before it had joined: what its sweep had not brought by then is not missed.
  abandoned       boolean     not null default false
);
create index outbox_scope_subscription on {schema}.outbox_scope (subscription_id);

insert into {schema}.outbox_scope (subscription_id, stream_like, event_types, start_from, start_at, began_snapshot,
       began_at, ended_snapshot)
  select s.id, s.stream_like, s.event_types, s.start_from, s.start_at, s.joined_snapshot, s.created_at,
         case when s.state = 'retired' then pg_current_snapshot() end
    from {schema}.outbox_subscription s order by s.id;

create function {schema}.outbox_keep_scope() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  if tg_op = 'INSERT' or (old.stream_like, old.event_types) is distinct from (new.stream_like, new.event_types) then
    insert into {schema}.outbox_scope (subscription_id, stream_like, event_types, start_from, start_at, began_snapshot,
           ended_snapshot)
      values (new.id, new.stream_like, new.event_types, new.start_from, new.start_at, new.joined_snapshot,
              case when new.state = 'retired' then pg_current_snapshot() end);
  elsif old.joined_snapshot is null and new.joined_snapshot is not null then
    update {schema}.outbox_scope k set began_snapshot = new.joined_snapshot, began_at = clock_timestamp()
     where k.subscription_id = new.id and k.began_snapshot is null;
  end if;
  if tg_op = 'UPDATE' and old.state <> 'retired' and new.state = 'retired' then
    update {schema}.outbox_scope k set ended_snapshot = pg_current_snapshot(), abandoned = old.state = 'joining'
     where k.subscription_id = new.id;
  end if;
  return null;
end
  $commitpost$;

create trigger outbox_subscription_scope
  after insert or update of stream_like, event_types, joined_snapshot, state on {schema}.outbox_subscription
  for each row execute function {schema}.outbox_keep_scope();

-- Events that were put in the place of one that could not be handled, at its position, for one subscription: there the
-- two count as one, and for all others the new one does not count. `original` is the first of those whose place it took.
create view {schema}.outbox_stand_in as
  with recursive stand_in (event_id, original, subscription_id) as (
    select a.event_id, a.amended_from, a.subscription_id from {schema}.outbox_amendment a
     where not exists (select 1 from {schema}.outbox_amendment b where b.event_id = a.amended_from)
    union all
    select a.event_id, s.original, a.subscription_id
      from stand_in s join {schema}.outbox_amendment a on a.amended_from = s.event_id
  )
  select * from stand_in;

-- Times and positions grow with the table, so that a few bytes for many pages are enough to find a day in it: next to
-- nothing for publishers.
create index outbox_event_written on {schema}.outbox_event using brin (created_at, id) with (autosummarize = on);

-- == the operator log as a chain ==================================================================

-- Entries are numbered in the order in which they were chained; ids are taken earlier and may be in another order.
alter table {schema}.outbox_operator_log
  add column entry bigint, add column previous_hash text, add column hash text;

-- The end of the chain: whoever adds an entry has it locked until his commit, so that no two follow the same one, and
-- entries that are cut off at the end are missed.
create table {schema}.outbox_operator_log_head (
  only_one boolean primary key default true check (only_one),
  entries  bigint  not null,
  hash     text    not null
);
insert into {schema}.outbox_operator_log_head (entries, hash) values (0, repeat('0', 64));

-- What is null is left out, so that a column that is added later changes nothing.
create function {schema}.outbox_hash(entry jsonb) returns text
  language sql immutable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select encode(sha256(convert_to(jsonb_object_agg(c.key, c.value)::text, 'UTF8')), 'hex')
      from jsonb_each(entry) c
     where c.value <> 'null'::jsonb
  $commitpost$;

-- All columns but the hash itself, previous_hash among them. The setting makes it the same text in every session.
create function {schema}.outbox_operator_hash(logged {schema}.outbox_operator_log) returns text
  language sql stable set search_path = pg_catalog, pg_temp set timezone = 'UTC'
  as $commitpost$ select {schema}.outbox_hash(to_jsonb(logged) - 'hash') $commitpost$;

create function {schema}.outbox_chain() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  head {schema}.outbox_operator_log_head;
begin
  -- A remark, not a document: it is kept for ever, and shown in lists. What an amendment adds to it has room beside.
  if length(new.note) > 2100 then
    raise exception 'a note must be at most 2000 characters long, but is %', length(new.note) using errcode = '22023',
      hint = 'Nothing was changed.';
  end if;
  if length(new.operator) > 200 then
    raise exception 'an operator''s name must be at most 200 characters long, but is %', length(new.operator)
      using errcode = '22023', hint = 'Nothing was changed.';
  end if;
  select * into strict head from {schema}.outbox_operator_log_head for update;
  new.entry := head.entries + 1;
  new.previous_hash := head.hash;
  new.hash := {schema}.outbox_operator_hash(new);
  update {schema}.outbox_operator_log_head set entries = new.entry, hash = new.hash;
  return new;
end
  $commitpost$;

-- What was logged before there was a chain is its beginning.
alter table {schema}.outbox_operator_log disable trigger outbox_operator_log_immutable;
do $commitpost$
declare
  logged {schema}.outbox_operator_log;
  head {schema}.outbox_operator_log_head;
begin
  for logged in select * from {schema}.outbox_operator_log order by id loop
    select * into head from {schema}.outbox_operator_log_head;
    logged.entry := head.entries + 1;
    logged.previous_hash := head.hash;
    logged.hash := {schema}.outbox_operator_hash(logged);
    update {schema}.outbox_operator_log o
       set entry = logged.entry, previous_hash = logged.previous_hash, hash = logged.hash where o.id = logged.id;
    update {schema}.outbox_operator_log_head set entries = logged.entry, hash = logged.hash;
  end loop;
end
$commitpost$;
alter table {schema}.outbox_operator_log enable trigger outbox_operator_log_immutable;

alter table {schema}.outbox_operator_log
  alter column entry set not null, alter column previous_hash set not null, alter column hash set not null;
create unique index outbox_operator_log_entry on {schema}.outbox_operator_log (entry);

create trigger outbox_operator_log_chain before insert on {schema}.outbox_operator_log
  for each row execute function {schema}.outbox_chain();

-- == who may call what ============================================================================

-- As in 0002: functions are open to everybody unless that is taken back.
revoke all on function
  {schema}.outbox_keep_scope(), {schema}.outbox_hash(jsonb), {schema}.outbox_chain(),
  {schema}.outbox_operator_hash({schema}.outbox_operator_log)
  from public;
