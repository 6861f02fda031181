-- Retention: events that every subscription is done with are deleted, or moved to an archive, in batches.

-- == archives =====================================================================================

-- The tables that events may be moved to. Only whoever may write here says which: the functions below write into them
-- with their owner's rights.
create table {schema}.outbox_archive (
  id          integer     generated always as identity primary key,
  schema_name text        not null,
  table_name  text        not null,
  created_at  timestamptz not null default clock_timestamp(),
  unique (schema_name, table_name)
);

-- What was archived, for ever: it cannot be published again, whatever becomes of the archive.
create table {schema}.outbox_archived (
  event_id         uuid        primary key,
  position         bigint      not null,
  -- Null once it was purged from the archive.
  archive_id       integer,
  -- Those whose deliveries went with it.
  subscription_ids integer[]   not null,
  created_at       timestamptz not null
);
-- Written in the order of positions and never changed: a few bytes for many pages find a window of it.
create index outbox_archived_written on {schema}.outbox_archived using brin (created_at, position)
  with (autosummarize = on);

create trigger outbox_archived_immutable before delete or truncate on {schema}.outbox_archived
  for each statement execute function {schema}.outbox_refuse_change();

-- An id in the form of UUID version 7 that is not older than an hour cannot be in an archive: see outbox_next_retained,
-- which leaves a day more, for clocks that are set back. The hour is handed in, so that the planner can put the body in
-- the place of the call: called for each row it took a seventh of what publishing many events costs the server.
create function {schema}.outbox_may_be_archived(event_id uuid, hour_ago uuid) returns boolean
  language sql immutable parallel safe
  as $commitpost$
    select get_byte(uuid_send(event_id), 6) / 16 <> 7 or event_id < hour_ago
  $commitpost$;

-- Called after the insert, because one that waited for the transaction that archived this very event
-- sees it only then; and where the snapshot is older than that, by the unique index, which knows no snapshots.
create function {schema}.outbox_refuse_archived(event_id uuid, "position" bigint) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  is_archived boolean;
begin
  if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    begin
      insert into {schema}.outbox_archived (event_id, position, archive_id, subscription_ids, created_at)
        values (outbox_refuse_archived.event_id, outbox_refuse_archived.position, 0, '{}', now());
      raise exception using errcode = 'CP001';
    exception
      when unique_violation then is_archived := true;
      when sqlstate 'CP001' then is_archived := false;
    end;
  else
    is_archived := exists (select 1 from {schema}.outbox_archived a
                            where a.event_id = outbox_refuse_archived.event_id);
  end if;
  if is_archived then
    raise exception 'event % was archived and cannot be published again', event_id
      using errcode = '23505', constraint = 'outbox_event_archived_pkey',
            detail = 'Key (event_id)=(' || event_id || ') is in outbox_archived.',
            hint = 'An event is published once. A new fact needs an id of its own.';
  end if;
end
  $commitpost$;

-- As maskPayload does it, on what is stored: numbers keep all their digits.
create function {schema}.outbox_mask_at(value jsonb, path text[]) returns jsonb
  language plpgsql immutable set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  key  text := path[1];
  rest text[] := path[2:];
begin
  if cardinality(path) = 0 then
    return '"***"';
  end if;
  if jsonb_typeof(value) = 'array' then
    return (select coalesce(jsonb_agg(case
              when key = '*' then {schema}.outbox_mask_at(item, rest)
              when key !~ '^[0-9]+$' then {schema}.outbox_mask_at(item, path)
              when key::numeric = n - 1 then {schema}.outbox_mask_at(item, rest)
              else item end order by n), '[]')
              from jsonb_array_elements(value) with ordinality as i(item, n));
  end if;
  if jsonb_typeof(value) <> 'object' then
    return value;
  end if;
  if key = '*' then
    return (select coalesce(jsonb_object_agg(m.key, {schema}.outbox_mask_at(m.value, rest)), '{}')
              from jsonb_each(value) m);
  end if;
  return case when value ? key then value || jsonb_build_object(key, {schema}.outbox_mask_at(value -> key, rest))
              else value end;
end
  $commitpost$;

create function {schema}.outbox_mask(payload jsonb, paths jsonb) returns jsonb
  language plpgsql immutable set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  path text;
begin
  for path in select jsonb_array_elements_text(paths) loop
    payload := {schema}.outbox_mask_at(payload, case path when '' then array[''] else string_to_array(path, '.') end);
  end loop;
  return payload;
end
  $commitpost$;

-- == runs =========================================================================================

-- One row for each time that a policy is carried out, and how far that is: whoever steps through it keeps nothing.
create table {schema}.outbox_retention_run (
  id              bigint      generated always as identity primary key,
  policy          text        not null,
  stream          text        not null,
  settings        jsonb       not null,
  -- Whose last delivery was done before it may go.
  cutoff          timestamptz not null,
  archive_id      integer,
  -- What is looked at: deliveries by position; then events that no subscription took; then those from a time when there
  -- was none. And how far that is.
  stage           text        not null default 'delivered' check (stage in ('delivered', 'unmatched', 'unserved')),
  last_position   bigint      not null default 0,
  last_event      uuid,
  deleted         bigint      not null default 0,
  archived        bigint      not null default 0,
  -- Left where they are: no verified export has them; the catalogue does not say what of them is to be masked.
  awaiting_export bigint      not null default 0,
  unknown_type    bigint      not null default 0,
  -- The positions of whole batches that it took away: nothing has to be looked for there. And who had registered last
  -- then, for a newcomer may want what stood there without a delivery.
  cleared         int8multirange not null default '{}',
  registered      bigint,
  holder          text,
  held_until      timestamptz not null default '-infinity',
  next_at         timestamptz not null default '-infinity',
  started_at      timestamptz not null default clock_timestamp(),
  updated_at      timestamptz not null default clock_timestamp(),
  finished_at     timestamptz,
  -- Its policy was changed while it ran: another run does the rest.
  superseded      boolean     not null default false
);
-- One at a time.
create unique index outbox_retention_run_open on {schema}.outbox_retention_run (policy) where finished_at is null;
create index outbox_retention_run_started on {schema}.outbox_retention_run (policy, started_at);

-- What workers may do in the name of a policy: the owner of the tables says so. The role of a worker settles deliveries,
-- and whoever has it should not be able to say as well how soon all that is settled is gone.
create table {schema}.outbox_retention_policy (
  policy     text        primary key,
  settings   jsonb       not null,
  allowed_at timestamptz not null default clock_timestamp()
);

-- == what may go ==================================================================================

create function {schema}.outbox_try_lock_registry() returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  perform {schema}.outbox_require_read_committed();
  return pg_try_advisory_xact_lock(hashtextextended('commitpost registry ' || {schema:literal}, 0));
end
  $commitpost$;

-- Which of these events nobody needs any more, together with those that stand at the same position: an amended event
-- and the one whose place it took go together. The caller has seen to it that nobody registers at this moment.
-- The settings leave the planner no way but the indexes: it may know nothing of the tables.
create function {schema}.outbox_removable(event_ids uuid[], done_before timestamptz) returns uuid[]
  language sql stable set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  as $commitpost$
    with recursive family as (
      select f.event_id from unnest(event_ids) as f(event_id)
      union
      select r.event_id from family f cross join lateral (
        select a.amended_from from {schema}.outbox_amendment a where a.event_id = f.event_id
        union all
        select a.event_id from {schema}.outbox_amendment a where a.amended_from = f.event_id) as r(event_id)
    ),
    member as materialized (
      select e.event_id, e.id, e.created_at, e.xid, e.stream, e.event_type
        from family f join {schema}.outbox_event e on e.event_id = f.event_id
    ),
    needed as materialized (
      select m.id from member m
       where m.created_at >= done_before
          or exists (select 1 from {schema}.outbox_unmatched u where u.event_id = m.event_id and u.reported_at is null)
          or exists (select 1 from {schema}.outbox_dead_letter l where l.event_id = m.event_id and not l.resolved)
          or exists (select 1 from {schema}.outbox_stream t join {schema}.outbox_subscription s on s.id = t.subscription_id
                      where s.state <> 'retired' and not pg_visible_in_snapshot(m.xid, t.snapshot)
                        and {schema}.outbox_matches(s.stream_like, s.event_types, m.stream, m.event_type))
      union all
      select d.id from member m
        join {schema}.outbox_delivery d on d.id = m.id
       where (d.status <> 'DONE' and not {schema}.outbox_is_buried(d.status, d.subscription_id, d.event_id))
          or coalesce(d.processed_at, d.updated_at) >= done_before
    )
    select coalesce(array_agg(m.event_id order by m.id), '{}') from member m
     where m.id not in (select n.id from needed n)
  $commitpost$;

-- Removes events and what is known of them. The caller has seen to it that nobody needs them.
create function {schema}.outbox_remove(removable uuid[]) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  as $commitpost$
begin
  delete from {schema}.outbox_delivery d using {schema}.outbox_event e
   where e.event_id = any (removable) and d.id = e.id;
  delete from {schema}.outbox_unmatched where event_id = any (removable);
  -- Set here and not in the function's head: only a superuser may define a function with a setting of our own.
  perform set_config('commitpost.retaining', 'on', true);
  delete from {schema}.outbox_event where event_id = any (removable);
  perform set_config('commitpost.retaining', 'off', true);
end
  $commitpost$;

-- Retention: forgets events that every subscription is done with, and what is known of them. What is live, what waits
-- for a person and what has not been reported keeps its event, and so does everything while a subscription is joining.
-- It waits for nobody for long, because every registration waits for it: it may be called again.
create function {schema}.outbox_forget(event_ids uuid[]) returns integer
  language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s'
  as $commitpost$
declare
  removable uuid[];
begin
  -- A subscription that registers at this moment may still want them: it waits, or is seen below.
  perform {schema}.outbox_lock_registry();
  perform 1 from {schema}.outbox_subscription s where s.state = 'joining';
  if found then
    return 0;
  end if;
  removable := {schema}.outbox_removable(event_ids, 'infinity');
  perform {schema}.outbox_remove(removable);
  return cardinality(removable);
end
  $commitpost$;

-- Copies events to an archive, with what became of their deliveries.
create function {schema}.outbox_keep_copy(run {schema}.outbox_retention_run, removable uuid[]) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  as $commitpost$
declare
  archive {schema}.outbox_archive;
  name text;
  taken bigint;
  lost uuid;
begin
  select * into strict archive from {schema}.outbox_archive a where a.id = run.archive_id;
  name := format('%I.%I', archive.schema_name, archive.table_name);
  -- The names are put in as text: neither may be taken for a part of the other, nor for a format.
  execute replace($sql$
    with copied as materialized (
      select e.*, d.deliveries, d.subscription_ids
        from @@.outbox_event e
       cross join lateral (
         select coalesce(jsonb_agg(jsonb_build_object('subscription', s.name, 'subscriptionId', s.id,
                  'status', d.status, 'attempts', d.attempt_count, 'processedAt', d.processed_at) order by s.id), '[]')
                  as deliveries,
                coalesce(array_agg(s.id order by s.id), '{}') as subscription_ids
           from @@.outbox_subscription s
           join @@.outbox_delivery d
             on d.subscription_id = s.id and d.id = e.id and d.event_id = e.event_id
         ) d
       where e.event_id = any ($1)
    ),
    noted as (
      insert into @@.outbox_archived (event_id, position, archive_id, subscription_ids, created_at)
        select c.event_id, c.id, $2, c.subscription_ids, c.created_at from copied c order by c.id
        on conflict do nothing
    )
    insert into $sql$, '@@', {schema:literal})
    || name
    || replace($sql$ (event_id, position, stream, event_type, schema_version, aggregate_type, aggregate_id,
           ordering_key, sequence, payload, headers, occurred_at, created_at, deliveries, masked, archived_at)
      select c.event_id, c.id, c.stream, c.event_type, c.schema_version, c.aggregate_type, c.aggregate_id,
             c.ordering_key, c.sequence,
             case when m.paths is null then c.payload else @@.outbox_mask(c.payload, m.paths) end, c.headers,
             c.occurred_at, c.created_at, c.deliveries, m.paths is not null, clock_timestamp()
        from copied c
       cross join lateral (select nullif($3 -> c.event_type, '[]'::jsonb) as paths) m
       order by c.id
      on conflict do nothing$sql$, '@@', {schema:literal})
    using removable, archive.id, run.settings -> 'mask';
  get diagnostics taken = row_count;
  if taken = cardinality(removable) then
    return;
  end if;
  -- It had some of them already, or it was there before and has keys or triggers of its own: what such a table leaves
  -- out must not be removed.
  execute 'select r.event_id from unnest($1) as r(event_id)
            where not exists (select 1 from ' || name || ' t where t.event_id = r.event_id) limit 1'
    into lost using removable;
  if lost is not null then
    raise exception 'the archive % did not take event %', name, lost using errcode = '23514',
      hint = 'A unique index or a trigger of the table leaves it out. Nothing was removed.';
  end if;
end
  $commitpost$;

-- The smallest id of UUID version 7, and of any other form, from that time on.
create function {schema}.outbox_id_at(at timestamptz) returns uuid
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select (encode(int8send(extract(epoch from at)::bigint * 65536000), 'hex') || repeat('0', 16))::uuid
  $commitpost$;

-- Where to go on after an id. They are in the order of time where they are of version 7: those that are too new are
-- stepped over, and not read through.
create function {schema}.outbox_after_new(last_event uuid, cutoff timestamptz) returns uuid
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select case when last_event >= {schema}.outbox_id_at(cutoff)
                then greatest(last_event, {schema}.outbox_id_at(clock_timestamp() + interval '1 hour'))
                else last_event end
  $commitpost$;

-- Where to go on after a position: past what this run or another has taken away lately. Until the rows that are gone have
-- been vacuumed, to find the next one among them takes as long as to read them all. After half a day it is looked there
-- again, for what was being published all the while.
create function {schema}.outbox_after_cleared(passed bigint) returns bigint
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select coalesce(max(upper(c.stretch) - 1), passed)
      from {schema}.outbox_retention_run r cross join lateral unnest(r.cleared) as c(stretch)
     where r.id > (select max(n.id) - 100 from {schema}.outbox_retention_run n)
       and r.updated_at > clock_timestamp() - interval '12 hours'
       and r.registered = (select x.last_value from {schema}.outbox_registry_xid x)
       and c.stretch @> passed + 1
  $commitpost$;

-- The next events to look at, and where the run is after them; null where there are no more.
create function {schema}.outbox_next_candidates(
    inout run {schema}.outbox_retention_run, batch integer, out candidates uuid[])
  language plpgsql stable set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = on
  as $commitpost$
declare
  first_position bigint;
  page uuid[];
begin
  if run.stage = 'delivered' then
    run.last_position := {schema}.outbox_after_cleared(run.last_position);
    select min(d.id) into first_position from {schema}.outbox_delivery d where d.id > run.last_position;
    if first_position is not null then
      run.last_position := first_position + batch - 1;
      select array_agg(distinct d.event_id) into candidates from {schema}.outbox_delivery d
       where d.id between first_position and run.last_position;
      -- Positions grow with time: where all are too new, so is whatever comes after. Two say nothing of that: what took
      -- the place of another is young at an old position, and what is of tomorrow was dated by a clock that was ahead.
      perform 1 from {schema}.outbox_event e
        where e.event_id = any (candidates)
          and (e.created_at < run.cutoff or e.created_at > clock_timestamp()
               or exists (select 1 from {schema}.outbox_amendment a where a.event_id = e.event_id));
      if found then
        return;
      end if;
      perform 1 from {schema}.outbox_event e where e.event_id = any (candidates);
      if not found then
        return;
      end if;
    end if;
    run.stage := 'unmatched';
  end if;
  if run.stage = 'unmatched' then
    page := array(
      select u.event_id from {schema}.outbox_unmatched u
       where u.event_id > coalesce(run.last_event, '00000000-0000-0000-0000-000000000000')
       order by u.event_id limit batch);
    if cardinality(page) > 0 then
      run.last_event := {schema}.outbox_after_new(page[cardinality(page)], run.cutoff);
      candidates := array(
        select u.event_id from {schema}.outbox_unmatched u
         where u.event_id = any (page) and u.reported_at is not null and u.created_at < run.cutoff);
      return;
    end if;
    run.stage := 'unserved';
    run.last_event := null;
    -- Whatever is newer than the oldest subscription has a delivery, or was not taken by any, or was read in the log.
    perform 1 from {schema}.outbox_event e
      where e.created_at < least(run.cutoff, (select min(s.created_at) from {schema}.outbox_subscription s
                                               where s.state <> 'retired'));
    if not found and not exists (select 1 from {schema}.outbox_stream) then
      run.last_event := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    end if;
  end if;
  -- An index is read from some id on, not from its beginning up to where that id is found.
  candidates := array(select e.event_id from {schema}.outbox_event e
                       where e.event_id > coalesce(run.last_event, '00000000-0000-0000-0000-000000000000')
                       order by e.event_id limit batch);
  run.last_event := {schema}.outbox_after_new(candidates[cardinality(candidates)], run.cutoff);
  candidates := nullif(candidates, '{}');
end
  $commitpost$;

-- What of the next events may go. They are looked up by their ids alone: together with the index of times, which knows
-- pages and not rows, each would be held against all the others.
create function {schema}.outbox_next_retained(
    inout run {schema}.outbox_retention_run, batch integer, out removable uuid[], out is_over boolean)
  language plpgsql stable set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
  as $commitpost$
declare
  next record;
  wanted uuid[];
  new_from uuid := {schema}.outbox_id_at(clock_timestamp() - interval '25 hours');
  awaiting bigint[];
  unknown bigint[];
  too_new bigint[];
begin
  select * into next from {schema}.outbox_next_candidates(run, batch);
  run := next.run;
  is_over := next.candidates is null;
  wanted := array(
    select e.event_id from {schema}.outbox_event e
     where e.event_id = any (next.candidates) and e.created_at < run.cutoff
       and e.stream like run.settings ->> 'streamLike'
       and not e.stream like any (array(select jsonb_array_elements_text(run.settings -> 'streamUnlike')))
       -- What has a delivery was looked at among these, what nobody took among those.
       and (run.stage = 'delivered' or not exists (
         select 1 from {schema}.outbox_delivery d where d.id = e.id))
       and (run.stage <> 'unserved' or not exists (
         select 1 from {schema}.outbox_unmatched u where u.event_id = e.event_id)));
  removable := case when cardinality(wanted) = 0 then '{}' else {schema}.outbox_removable(wanted, run.cutoff) end;
  if cardinality(removable) = 0 then
    return;
  end if;
  select array_agg(distinct e.id) filter (where (run.settings ->> 'requireExport')::boolean
           and not {schema}.outbox_is_exported(e.stream, e.id, e.event_id)),
         array_agg(distinct e.id) filter (
           where run.settings -> 'mask' <> 'null' and not run.settings -> 'mask' ? e.event_type),
         -- Its id says that it is newer than it is: publishers do not look for it before that time has passed.
         array_agg(distinct e.id) filter (where run.archive_id is not null
           and get_byte(uuid_send(e.event_id), 6) between 112 and 127
           and e.event_id >= new_from)
    into awaiting, unknown, too_new
    from {schema}.outbox_event e where e.event_id = any (removable);
  run.awaiting_export := run.awaiting_export + coalesce(cardinality(awaiting), 0);
  run.unknown_type := run.unknown_type + coalesce(cardinality(unknown), 0);
  removable := array(
    select e.event_id from {schema}.outbox_event e
     where e.event_id = any (removable) and e.id <> all (coalesce(awaiting || unknown || too_new, '{}'))
     order by e.id);
end
  $commitpost$;

-- == how they go ==================================================================================

-- A run as it would begin now. Writes nothing.
create function {schema}.outbox_draft_retention(policy text, settings jsonb) returns {schema}.outbox_retention_run
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  run {schema}.outbox_retention_run;
begin
  if policy is null or (settings ->> 'streamLike') is null or (settings ->> 'keepSeconds')::float8 < 0 then
    raise exception 'a retention policy needs a name, a stream and for how long to keep' using errcode = '22023';
  end if;
  run.policy := policy;
  run.stream := settings ->> 'stream';
  run.settings := settings;
  run.cutoff := clock_timestamp() - (settings ->> 'keepSeconds')::float8 * interval '1 second';
  run.stage := 'delivered';
  run.last_position := 0;
  run.deleted := 0;
  run.archived := 0;
  run.awaiting_export := 0;
  run.unknown_type := 0;
  run.cleared := '{}';
  if settings -> 'archive' <> 'null' then
    -- 0 is none: to know what would go, nobody has to make it first.
    run.archive_id := coalesce((
      select a.id from {schema}.outbox_archive a
       where a.schema_name = settings -> 'archive' ->> 'schema' and a.table_name = settings -> 'archive' ->> 'table'), 0);
  end if;
  return run;
end
  $commitpost$;

-- Begins a run, or goes on with the one that was not finished. With an hour (UTC): null where one was begun since it
-- last struck.
create function {schema}.outbox_begin_retention(policy text, settings jsonb, hour integer default null) returns bigint
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  draft {schema}.outbox_retention_run;
  known {schema}.outbox_retention_run;
  struck timestamp := date_trunc('day', now() at time zone 'UTC') + hour * interval '1 hour';
begin
  draft := {schema}.outbox_draft_retention(policy, settings);
  if draft.archive_id = 0 then
    raise exception 'there is no archive %.%', settings -> 'archive' ->> 'schema', settings -> 'archive' ->> 'table'
      using errcode = '55000', hint = 'The owner of the tables makes it, with the first run or outbox.retention.prepare().';
  end if;
  perform pg_advisory_xact_lock(hashtextextended('commitpost retention ' || {schema:literal}, 0));
  select * into known from {schema}.outbox_retention_run r
   where r.policy = draft.policy and r.finished_at is null for update;
  if found then
    if known.settings = draft.settings then
      return known.id;
    end if;
    -- Two deployments that do not agree would begin anew for ever, each in the place of the other. A person may.
    if hour is not null
       and greatest(known.held_until, known.updated_at + interval '30 seconds') > clock_timestamp() then
      return null;
    end if;
    update {schema}.outbox_retention_run r
       set finished_at = clock_timestamp(), superseded = true, updated_at = clock_timestamp() where r.id = known.id;
  elsif hour is not null then
    if struck > now() at time zone 'UTC' then
      struck := struck - interval '1 day';
    end if;
    perform 1 from {schema}.outbox_retention_run r
      where r.policy = draft.policy and r.started_at >= struck at time zone 'UTC' and not r.superseded;
    if found then
      return null;
    end if;
  end if;
  insert into {schema}.outbox_retention_run (policy, stream, settings, cutoff, archive_id)
    values (draft.policy, draft.stream, draft.settings, draft.cutoff, draft.archive_id) returning * into known;
  return known.id;
end
  $commitpost$;

-- Whether somebody who does not own the tables may begin a run like this: no sooner, of no other events and in no other
-- way than the owner has said. What is masked is the catalogue's, which grows with every deployment.
create function {schema}.outbox_is_allowed_policy(asked text, wanted jsonb) returns boolean
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select exists (
      select 1 from {schema}.outbox_retention_policy p
       where p.policy = asked
         and p.settings ->> 'streamLike' = wanted ->> 'streamLike'
         and p.settings -> 'streamUnlike' <@ (wanted -> 'streamUnlike')
         and (wanted ->> 'keepSeconds')::float8 >= (p.settings ->> 'keepSeconds')::float8
         and p.settings -> 'archive' = wanted -> 'archive'
         and ((wanted ->> 'requireExport')::boolean or not (p.settings ->> 'requireExport')::boolean))
  $commitpost$;

-- By a worker.
create function {schema}.outbox_begin_retention_by_policy(policy text, settings jsonb, hour integer) returns bigint
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  owner oid := (select c.relowner from pg_class c where c.oid = to_regclass({schema:literal} || '.outbox_event'));
begin
  if not pg_has_role(session_user, owner, 'member') and not {schema}.outbox_is_allowed_policy(policy, settings) then
    raise exception 'the retention policy "%" was not allowed as it is: call outbox.retention.prepare() with it, as the owner of the tables',
      policy using errcode = '55000', hint = 'Nothing was removed.';
  end if;
  return {schema}.outbox_begin_retention(policy, settings, hour);
end
  $commitpost$;

-- What of these nobody has locked, position by position. Locks it, and so does not choose partitions (session-settings.ts).
create function {schema}.outbox_unlocked(removable uuid[]) returns uuid[]
  language plpgsql set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_partition_pruning = off
  as $commitpost$
declare
  free uuid[];
  locked bigint[];
begin
  free := array(select e.event_id from {schema}.outbox_event e where e.event_id = any (removable)
                   for update skip locked);
  locked := array(select e.id from {schema}.outbox_event e where e.event_id = any (removable) and e.event_id <> all (free));
  with had as (
    select e.id, d.subscription_id from {schema}.outbox_event e
      join {schema}.outbox_delivery d on d.id = e.id
     where e.event_id = any (free)
  ),
  taken as (
    select d.id, d.subscription_id from {schema}.outbox_delivery d where d.id = any (array(select h.id from had h))
       for update skip locked
  )
  select locked || coalesce(array_agg(h.id), '{}') into locked from had h
   where (h.id, h.subscription_id) not in (select t.id, t.subscription_id from taken t);
  return array(select e.event_id from {schema}.outbox_event e
                where e.event_id = any (free) and e.id <> all (locked) order by e.id);
end
  $commitpost$;

-- Notes what a batch in the order of positions has left empty, from the position that was the last one before it to the
-- last one that it took away: what comes after that may not have been given to anybody yet.
create function {schema}.outbox_note_cleared(
    inout run {schema}.outbox_retention_run, passed bigint, batch integer, taken_to bigint)
  language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off
  as $commitpost$
declare
  registered bigint := (select x.last_value from {schema}.outbox_registry_xid x);
  first_position bigint := passed + 1;
begin
  if run.registered is distinct from registered then
    run.cleared := '{}';
    run.registered := registered;
  end if;
  -- One stretch with the batch before, which may have ended with positions that nobody had.
  if upper(run.cleared) between passed - batch + 2 and passed then
    first_position := upper(run.cleared);
  end if;
  -- Where the streams of several policies are mixed there is something left in every batch, and nothing to note. From
  -- the position before the batch to its first one nobody was found.
  perform 1 from {schema}.outbox_delivery d where d.id >= first_position and d.id <= passed
   union all
  select 1 from {schema}.outbox_delivery d where d.id > run.last_position - batch and d.id <= taken_to;
  if not found and (select count(*) from unnest(run.cleared)) < 1000 then
    run.cleared := run.cleared + int8multirange(int8range(first_position, taken_to + 1));
  end if;
end
  $commitpost$;

create function {schema}.outbox_take_away(run {schema}.outbox_retention_run, removable uuid[]) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  if run.archive_id is not null then
    perform {schema}.outbox_keep_copy(run, removable);
  end if;
  perform {schema}.outbox_remove(removable);
end
  $commitpost$;

-- Why a run cannot be taken further at this moment, and how long to wait in milliseconds; null where it can. Takes the
-- lock of the registry.
create function {schema}.outbox_retention_waits(
    run {schema}.outbox_retention_run, stepper text, out wait_ms integer, out waits_for text)
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  free_at timestamptz := run.next_at;
begin
  if run.holder is distinct from stepper then
    free_at := greatest(free_at, run.held_until);
    waits_for := 'holder';
  end if;
  if free_at > clock_timestamp() then
    wait_ms := least(ceil(1000 * extract(epoch from free_at - clock_timestamp())), 60000);
    return;
  end if;
  waits_for := 'registration';
  if not {schema}.outbox_try_lock_registry() then
    wait_ms := 100;
    return;
  end if;
  -- A statement of its own: one that had begun before the lock was had would not see who joined just before.
  perform 1 from {schema}.outbox_subscription s where s.state = 'joining';
  if found then
    wait_ms := 100;
    return;
  end if;
  waits_for := null;
end
  $commitpost$;

-- One batch, in one transaction with its record. Whoever holds the run steps; others wait until it lapses. It waits for
-- nobody: while somebody registers or joins it is busy, and rows that somebody has locked are left for the next run.
create function {schema}.outbox_step_retention(
    run_id bigint, operator text, note text, stepper text, batch integer, pause_ms integer, share double precision,
    out state text, out deleted integer, out archived integer, out wait_ms integer, out waits_for text)
  language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
  as $commitpost$
declare
  run {schema}.outbox_retention_run;
  next record;
  period record;
  removable uuid[] := '{}';
  passed bigint;
  taken_to bigint;
  began timestamptz := clock_timestamp();
begin
  state := 'busy';
  deleted := 0;
  archived := 0;
  select * into run from {schema}.outbox_retention_run r where r.id = run_id for update skip locked;
  if not found then
    perform 1 from {schema}.outbox_retention_run r where r.id = run_id;
    if not found then
      raise exception 'retention run % does not exist', run_id using errcode = 'P0002';
    end if;
    wait_ms := 100;
    waits_for := 'holder';
    return;
  end if;
  if run.finished_at is not null then
    state := 'done';
    wait_ms := 0;
    return;
  end if;
  select w.wait_ms, w.waits_for into wait_ms, waits_for from {schema}.outbox_retention_waits(run, stepper) w;
  if wait_ms is not null then
    return;
  end if;
  -- Whole periods first, where the tables are partitioned: see 0010.
  if run.stage = 'delivered' and run.last_position = 0 then
    select * into period from {schema}.outbox_drop_next_period(run);
    if period.dropped < 0 then
      wait_ms := 500;
      waits_for := 'tables';
      return;
    end if;
    if period.dropped >= 0 then
      deleted := period.dropped;
      wait_ms := greatest(pause_ms, ceil(1000 * extract(epoch from clock_timestamp() - began) * (1 / share - 1)));
      insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
        values (operator, 'retain', jsonb_build_object('run', run.id, 'policy', run.policy, 'stream', run.stream,
                'droppedUntil', period.until), deleted, note);
      update {schema}.outbox_retention_run r
         set deleted = r.deleted + outbox_step_retention.deleted, holder = stepper, updated_at = clock_timestamp(),
             next_at = clock_timestamp() + wait_ms * interval '1 millisecond',
             held_until = clock_timestamp() + (wait_ms + 30000) * interval '1 millisecond'
       where r.id = run.id;
      state := 'running';
      return;
    end if;
  end if;
  -- What may not go is passed over quickly, many batches of it at a time.
  loop
    passed := run.last_position;
    select * into next from {schema}.outbox_next_retained(run, batch);
    run := next.run;
    removable := next.removable;
    exit when next.is_over or cardinality(removable) > 0 or clock_timestamp() > began + interval '50 milliseconds';
  end loop;
  if cardinality(removable) > 0 then
    taken_to := (select max(e.id) from {schema}.outbox_event e where e.event_id = any (removable));
    begin
      perform {schema}.outbox_take_away(run, removable);
    exception when lock_not_available then
      removable := {schema}.outbox_unlocked(removable);
      perform {schema}.outbox_take_away(run, removable);
    end;
    archived := case when run.archive_id is null then 0 else cardinality(removable) end;
    deleted := cardinality(removable) - archived;
    if cardinality(removable) > 0 then
      insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
        values (operator, 'retain', jsonb_build_object('run', run.id, 'policy', run.policy, 'stream', run.stream,
                'archive', run.settings -> 'archive', 'toPosition', run.last_position), cardinality(removable), note);
    end if;
    if run.stage = 'delivered' then
      run := {schema}.outbox_note_cleared(run, passed, batch, taken_to);
    end if;
  end if;
  -- So long that it has no more than its share of the time: what is live has the database to itself for the rest.
  wait_ms := greatest(pause_ms, ceil(1000 * extract(epoch from clock_timestamp() - began) * (1 / share - 1)));
  update {schema}.outbox_retention_run r
     set stage = run.stage, last_position = run.last_position, last_event = run.last_event,
         deleted = r.deleted + outbox_step_retention.deleted, archived = r.archived + outbox_step_retention.archived,
         awaiting_export = run.awaiting_export, unknown_type = run.unknown_type,
         cleared = run.cleared, registered = run.registered,
         holder = stepper, updated_at = clock_timestamp(),
         next_at = clock_timestamp() + wait_ms * interval '1 millisecond',
         held_until = clock_timestamp() + (wait_ms + 30000) * interval '1 millisecond',
         finished_at = case when next.is_over then clock_timestamp() end
   where r.id = run.id;
  state := case when next.is_over then 'done' else 'running' end;
end
  $commitpost$;

-- By hand.
create function {schema}.outbox_retain(
    run_id bigint, operator text, note text, stepper text, batch integer default 1000, pause_ms integer default 0,
    share double precision default 1, out state text, out deleted integer, out archived integer, out wait_ms integer,
    out waits_for text)
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  perform {schema}.outbox_require_operator(operator);
  select s.state, s.deleted, s.archived, s.wait_ms, s.waits_for into state, deleted, archived, wait_ms, waits_for
    from {schema}.outbox_step_retention(run_id, operator, note, stepper, batch, pause_ms, share) s;
end
  $commitpost$;

-- By a worker: recorded as what its policy says.
create function {schema}.outbox_retain_by_policy(
    run_id bigint, stepper text, batch integer, pause_ms integer, share double precision,
    out state text, out deleted integer, out archived integer, out wait_ms integer, out waits_for text)
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  policy text := (select r.policy from {schema}.outbox_retention_run r where r.id = run_id);
begin
  select s.state, s.deleted, s.archived, s.wait_ms, s.waits_for into state, deleted, archived, wait_ms, waits_for
    from {schema}.outbox_step_retention(run_id, 'policy:' || policy, null, stepper, batch, pause_ms, share) s;
end
  $commitpost$;

-- What a batch would take away, and where the next one begins. `run` is a draft, or what this returned. Changes nothing.
create function {schema}.outbox_preview_retention(
    inout run jsonb, batch integer, out events integer, out is_over boolean)
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  next record;
begin
  select * into next
    from {schema}.outbox_next_retained(jsonb_populate_record(null::{schema}.outbox_retention_run, run), batch);
  run := to_jsonb(next.run);
  events := cardinality(next.removable);
  is_over := next.is_over;
end
  $commitpost$;

-- == what is in the archives ======================================================================

-- What was archived and is not in its archive: compared by number and digest, and one by one only where these differ.
create function {schema}.outbox_missing_archived(first_position bigint, last_position bigint)
  returns table (event_id uuid, subscription_ids integer[])
  language plpgsql stable security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  archive {schema}.outbox_archive;
  name text;
  digest text := 'select (count(*), bit_xor(uuid_hash_extended(k.event_id, k.position)))::text from ';
  meant text;
  found_there text;
begin
  for archive in select * from {schema}.outbox_archive loop
    name := format('%I.%I', archive.schema_name, archive.table_name);
    if to_regclass(name) is not null then
      select (count(*), bit_xor(uuid_hash_extended(k.event_id, k.position)))::text into meant
        from {schema}.outbox_archived k
       where k.archive_id = archive.id and k.position between first_position and last_position;
      execute digest || name || ' k where k.position between $1 and $2' into found_there
        using first_position, last_position;
      continue when meant = found_there;
    end if;
    return query execute
      'select k.event_id, k.subscription_ids from ' || {schema:literal} || '.outbox_archived k
        where k.archive_id = $1 and k.position between $2 and $3'
      || case when to_regclass(name) is null then ''
              else ' and not exists (select 1 from ' || name || ' t where t.event_id = k.event_id)' end
      || ' order by k.position' using archive.id, first_position, last_position;
  end loop;
end
  $commitpost$;

-- One batch: removes events from an archive that were archived longer ago than that. They still cannot be published.
create function {schema}.outbox_purge_archive(
    archive_schema text, archive_table text, older_than interval, operator text, note text default null,
    most integer default 1000)
  returns integer language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  archive {schema}.outbox_archive;
  purged uuid[];
begin
  perform {schema}.outbox_require_operator(operator);
  select * into archive from {schema}.outbox_archive a
   where a.schema_name = archive_schema and a.table_name = archive_table;
  if not found then
    raise exception 'there is no archive %.%', archive_schema, archive_table using errcode = 'P0002';
  end if;
  if older_than is null or older_than < interval '0' or most is null or most not between 1 and 100000 then
    raise exception 'a purge needs an age of 0 or more and a batch of 1 to 100000' using errcode = '22023';
  end if;
  execute format('with gone as (delete from %1$I.%2$I t where t.event_id = any (array(select o.event_id from %1$I.%2$I o
      where o.archived_at < clock_timestamp() - $1 order by o.position limit $2)) returning t.event_id)
    select array_agg(g.event_id) from gone g', archive_schema, archive_table) into purged using older_than, most;
  if purged is not null then
    update {schema}.outbox_archived k set archive_id = null where k.event_id = any (purged);
    insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
      values (operator, 'purge-archive', jsonb_build_object('archive', archive_schema || '.' || archive_table,
              'olderThanSeconds', extract(epoch from older_than)), cardinality(purged), note);
  end if;
  return coalesce(cardinality(purged), 0);
end
  $commitpost$;

-- == who may call what ============================================================================

-- As in 0002: functions are open to everybody unless that is taken back.
revoke all on function
  {schema}.outbox_forget(uuid[]),
  {schema}.outbox_refuse_archived(uuid, bigint), {schema}.outbox_mask_at(jsonb, text[]), {schema}.outbox_mask(jsonb, jsonb),
  {schema}.outbox_try_lock_registry(), {schema}.outbox_removable(uuid[], timestamptz), {schema}.outbox_remove(uuid[]),
  {schema}.outbox_keep_copy({schema}.outbox_retention_run, uuid[]),
  {schema}.outbox_next_retained({schema}.outbox_retention_run, integer), {schema}.outbox_id_at(timestamptz),
  {schema}.outbox_after_new(uuid, timestamptz), {schema}.outbox_after_cleared(bigint),
  {schema}.outbox_note_cleared({schema}.outbox_retention_run, bigint, integer, bigint),
  {schema}.outbox_next_candidates({schema}.outbox_retention_run, integer),
  {schema}.outbox_draft_retention(text, jsonb), {schema}.outbox_begin_retention(text, jsonb, integer),
  {schema}.outbox_is_allowed_policy(text, jsonb), {schema}.outbox_begin_retention_by_policy(text, jsonb, integer),
  {schema}.outbox_unlocked(uuid[]), {schema}.outbox_take_away({schema}.outbox_retention_run, uuid[]),
  {schema}.outbox_retention_waits({schema}.outbox_retention_run, text),
  {schema}.outbox_step_retention(bigint, text, text, text, integer, integer, double precision),
  {schema}.outbox_retain(bigint, text, text, text, integer, integer, double precision),
  {schema}.outbox_retain_by_policy(bigint, text, integer, integer, double precision),
  {schema}.outbox_preview_retention(jsonb, integer), {schema}.outbox_missing_archived(bigint, bigint),
  {schema}.outbox_purge_archive(text, text, interval, text, text, integer)
  from public;
