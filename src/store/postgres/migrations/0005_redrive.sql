-- Acting on many dead letters: keys moved aside, plans of what is re-driven, policies that re-drive by themselves.

-- == moving a key aside ===========================================================================

alter table {schema}.outbox_dead_letter
  -- The transaction in which an operator moved its key aside: in it, and in no other, a delivery that was not tried may
  -- become DEAD, and one that blocks its key may cease to. Workers cannot write it.
  add column moved_xid xid8,
  -- When a policy re-drives it. Infinity: never, it is left to a person. Null: no policy has looked at it.
  add column redrive_at timestamptz;

create index outbox_dead_letter_unplanned on {schema}.outbox_dead_letter (subscription_id, error_code)
  where not resolved and redrive_at is null;
create index outbox_dead_letter_due on {schema}.outbox_dead_letter (subscription_id, redrive_at, position)
  where not resolved and redrive_at < 'infinity';
create index outbox_dead_letter_key on {schema}.outbox_dead_letter (subscription_id, ordering_key, position)
  where not resolved and ordering_key is not null;

-- Whether a DEAD delivery before this position keeps what stands behind it on its key waiting.
create function {schema}.outbox_is_behind_dead(
    subscription integer, key_lane smallint, key text, before bigint)
  returns boolean language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select key is not null and exists (
      select 1 from {schema}.outbox_delivery h
       where h.subscription_id = subscription and h.lane = key_lane and h.ordering_key = key and h.held
         and h.status = 'DEAD' and h.id < before)
  $commitpost$;

-- The waiting deliveries of a key become DEAD with an open dead letter each, at most so many. What somebody has locked is
-- left for the next time.
create function {schema}.outbox_move_waiting(
    moving {schema}.outbox_subscription, key_lane smallint, key text, most integer)
  returns integer language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  held_ids bigint[];
  fresh_ids bigint[];
  moved integer;
begin
  held_ids := array(
    select d.id from {schema}.outbox_delivery d
     where d.subscription_id = moving.id and d.lane = key_lane and d.ordering_key = key and d.held
       and d.status = 'PENDING'
     order by d.id
     limit most
       for update skip locked);
  fresh_ids := array(
    select d.id from {schema}.outbox_delivery d
     where d.subscription_id = moving.id and d.lane = key_lane and d.fresh
       and d.ordering_key = key
     order by d.id + 0
     limit most - cardinality(held_ids)
       for update skip locked);
  with changed as (
    update {schema}.outbox_delivery d
       set status = 'DEAD', fresh = false, held = false, held_since = null, suspect = false, next_retry_at = null,
           last_error_code = 'MOVED_ASIDE',
           last_error_message = 'Not delivered: its ordering key was blocked and was moved aside.',
           updated_at = clock_timestamp()
     where d.subscription_id = moving.id and d.id = any (held_ids || fresh_ids)
    returning d.*
  )
  insert into {schema}.outbox_dead_letter (subscription, subscription_id, lane, position, event_id, stream, event_type,
         schema_version, aggregate_type, aggregate_id, ordering_key, payload, headers, occurred_at, error_code,
         error_message, attempt_history, retry_count, moved_xid)
  select moving.name, c.subscription_id, c.lane, c.id, e.event_id, e.stream, e.event_type,
         e.schema_version, e.aggregate_type, e.aggregate_id, c.ordering_key, e.payload, e.headers, e.occurred_at,
         c.last_error_code, c.last_error_message, coalesce(c.attempt_history, '[]'), greatest(c.attempt_count - 1, 0),
         pg_current_xact_id()
    from changed c join {schema}.outbox_event e on e.event_id = c.event_id
   order by c.id;
  get diagnostics moved = row_count;
  return moved;
end
  $commitpost$;

-- Moves a blocked key aside: what waits behind its dead letter becomes dead letters too, and new events of the key are
-- delivered. At most so many in one call. While any is left the dead letter goes on blocking the key, so that nothing
-- passes: call it again until it says that the key is free.
create function {schema}.outbox_move_aside(
    subscription_name text, key text, operator text, note text default null, most integer default 1000,
    out moved integer, out free boolean)
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  moving {schema}.outbox_subscription;
  key_lane smallint;
  head bigint;
  blocking bigint[];
begin
  perform {schema}.outbox_require_operator(operator);
  select * into moving from {schema}.outbox_subscription s where s.name = subscription_name and s.state <> 'retired';
  if not found then
    raise exception 'subscription "%" does not exist', subscription_name using errcode = 'P0002';
  end if;
  key_lane := {schema}.outbox_lane_of(key, moving.lanes);
  -- The letter before the delivery, as whoever retries or resolves it does.
  select l.id into head from {schema}.outbox_dead_letter l
   where l.subscription_id = moving.id and l.ordering_key = key and not l.resolved
     and exists (select 1 from {schema}.outbox_delivery d
                  where d.id = l.position and d.subscription_id = moving.id and d.status = 'DEAD' and d.held)
   order by l.position limit 1 for update;
  if not found then
    raise exception 'key "%" of subscription "%" is not blocked by a dead letter', key, subscription_name
      using errcode = '55000', constraint = 'key-not-blocked',
            detail = json_build_object('key', key, 'subscription', subscription_name),
            hint = 'Only a key that a dead letter blocks can be moved aside.';
  end if;
  moved := {schema}.outbox_move_waiting(moving, key_lane, key, greatest(most, 1));
  free := not exists (
      select 1 from {schema}.outbox_delivery d
       where d.subscription_id = moving.id and d.lane = key_lane and d.ordering_key = key and d.held
         and d.status = 'PENDING')
    and not exists (
      select 1 from {schema}.outbox_delivery d
       where d.subscription_id = moving.id and d.lane = key_lane and d.fresh
         and d.ordering_key = key)
    and not exists (
      select 1 from {schema}.outbox_in_hand h where h.subscription_id = moving.id and h.ordering_key = key);
  if free then
    blocking := array(
      select d.id from {schema}.outbox_delivery d
       where d.subscription_id = moving.id and d.lane = key_lane and d.ordering_key = key and d.held
         and d.status = 'DEAD');
    update {schema}.outbox_dead_letter l set moved_xid = pg_current_xact_id(), updated_at = clock_timestamp()
     where l.subscription_id = moving.id and l.ordering_key = key and not l.resolved and l.position = any (blocking);
    update {schema}.outbox_delivery d set held = false, held_since = null, updated_at = clock_timestamp()
     where d.id = any (blocking) and d.subscription_id = moving.id and d.status = 'DEAD';
  end if;
  if free or moved > 0 then
    insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
      values (operator, 'move-aside', jsonb_build_object('subscription', moving.name, 'orderingKey', key,
              'deadLetter', head, 'free', free), moved, outbox_move_aside.note);
  end if;
end
  $commitpost$;

-- == plans ========================================================================================

create table {schema}.outbox_redrive_plan (
  id            bigint           generated always as identity primary key,
  filter        jsonb            not null,
  state         text             not null default 'planned'
                                 check (state in ('planned', 'applying', 'done', 'stopped', 'cancelled')),
  planned       integer          not null default 0,
  -- Letters that matched and cannot be delivered again: of retired subscriptions, or without a DEAD delivery.
  unreachable   integer          not null default 0,
  reordered     integer          not null default 0,
  driven        integer          not null default 0,
  succeeded     integer          not null default 0,
  died          integer          not null default 0,
  blocked       integer          not null default 0,
  skipped       integer          not null default 0,
  rate          double precision check (rate > 0),
  at_once       integer          not null default 100 check (at_once > 0),
  stop_share    double precision check (stop_share > 0 and stop_share <= 1),
  min_sample    integer          not null default 20 check (min_sample > 0),
  -- What had come of it when it was last begun: the share is of what came since.
  judged_before integer          not null default 0,
  died_before   integer          not null default 0,
  -- No batch before this time: the rate holds for all who apply it together.
  next_at       timestamptz      not null default clock_timestamp(),
  created_at    timestamptz      not null default clock_timestamp(),
  expires_at    timestamptz      not null default clock_timestamp() + interval '1 day',
  applied_by    text,
  updated_at    timestamptz      not null default clock_timestamp()
);

-- Of an ordered key the first is waiting and the others are queued behind it. What is driven is on its way.
create table {schema}.outbox_redrive_item (
  plan_id         bigint   not null,
  letter_id       bigint   not null,
  subscription_id integer  not null,
  lane            smallint not null,
  position        bigint   not null,
  event_id        uuid     not null,
  event_type      text     not null,
  ordering_key    text,
  reorders        boolean  not null default false,
  state           text     not null
                           check (state in ('waiting', 'queued', 'driven', 'done', 'dead', 'blocked', 'skipped')),
  reason          text     check (reason in ('resolved', 'gone', 'retired', 'behind')),
  primary key (plan_id, letter_id),
  check ((state = 'skipped') = (reason is not null))
);
create index outbox_redrive_item_waiting on {schema}.outbox_redrive_item (plan_id, position, letter_id)
  where state = 'waiting';
create index outbox_redrive_item_driven on {schema}.outbox_redrive_item (plan_id) where state = 'driven';
create index outbox_redrive_item_skipped on {schema}.outbox_redrive_item (plan_id, reason) where state = 'skipped';
create index outbox_redrive_item_key on {schema}.outbox_redrive_item (plan_id, subscription_id, ordering_key, position)
  where ordering_key is not null and state in ('waiting', 'queued', 'driven');

-- Marks the letters of a plan that come too late for their order: a later event of the key was handled or is in hand. A
-- letter that blocks its key has let nothing pass. Reads the deliveries once, and only where something may have passed.
create function {schema}.outbox_mark_reordered(plan bigint) returns integer
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  first bigint;
  marked integer;
begin
  select min(i.position) into first from {schema}.outbox_redrive_item i
    join {schema}.outbox_delivery d on d.id = i.position and d.subscription_id = i.subscription_id
   where i.plan_id = plan and i.ordering_key is not null and not d.held;
  if first is null then
    return 0;
  end if;
  with keys as materialized (
    select distinct i.subscription_id, i.ordering_key from {schema}.outbox_redrive_item i
     where i.plan_id = plan and i.ordering_key is not null
  ),
  passed as materialized (
    select d.subscription_id, d.ordering_key, max(d.id) as last
      from {schema}.outbox_delivery d join keys k using (subscription_id, ordering_key)
     where d.id > first and d.status in ('DONE', 'PROCESSING')
     group by d.subscription_id, d.ordering_key
  )
  update {schema}.outbox_redrive_item i set reorders = true from passed p
   where i.plan_id = plan and i.subscription_id = p.subscription_id and i.ordering_key = p.ordering_key
     and i.position < p.last;
  get diagnostics marked = row_count;
  return marked;
end
  $commitpost$;

-- Refuses ids that no dead letter has, or whose letter was decided on: whoever names letters means each of them.
create function {schema}.outbox_require_open_letters(ids bigint[]) returns void
  language plpgsql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  told constant integer := 20;
  unknown_ids bigint[];
  decided integer;
  by_whom text[];
  in_brief text;
begin
  unknown_ids := array(
    select distinct i.id from unnest(ids) as i(id)
     where not exists (select 1 from {schema}.outbox_dead_letter l where l.id = i.id)
     order by 1);
  if cardinality(unknown_ids) > 0 then
    raise exception 'there is no dead letter %', array_to_string(unknown_ids[:told], ', ')
        || case when cardinality(unknown_ids) > told then format(' and %s more', cardinality(unknown_ids) - told) else '' end
      using errcode = 'P0002', constraint = 'unknown-letters', detail = array_to_string(unknown_ids, ', '),
            hint = 'Nothing was planned. The ids may be mistyped, or the letters removed.';
  end if;
  select count(*), (array_agg(format('%s by %s', l.id, l.resolved_by) order by l.id))[:told],
         string_agg(format('%s (%s)', l.id, l.resolved_by), ', ' order by l.id) filter (where l.n <= told)
           || case when count(*) > told then ', ...' else '' end
    into decided, by_whom, in_brief
    from (select d.id, d.resolved_by, row_number() over (order by d.id) as n from {schema}.outbox_dead_letter d
           where d.id = any (ids) and d.resolved) l;
  if decided > 0 then
    raise exception 'dead letters that were named are already decided: %', array_to_string(by_whom, ', ')
        || case when decided > told then format(' and %s more', decided - told) else '' end
      using errcode = '55000', constraint = 'letters-decided',
            detail = json_build_object('count', decided, 'letters', in_brief),
            hint = 'Nothing was planned. Leave them out.';
  end if;
end
  $commitpost$;

-- Writes down which open dead letters are to be re-driven. Changes nothing else. The filter is an object with any of
-- subscription, stream, eventType, reason, errorCode, fingerprint, orderingKey, failedFrom, failedTo (not included), ids.
create function {schema}.outbox_plan_redrive(filter jsonb default '{}') returns bigint
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  strangers text;
  wanted_ids bigint[];
  plan bigint;
  found_letters integer;
  reachable_letters integer;
begin
  select string_agg(k.name, ', ') into strangers from jsonb_object_keys(filter) as k(name)
   where k.name <> all (array['subscription', 'stream', 'eventType', 'reason', 'errorCode', 'fingerprint', 'orderingKey',
                              'failedFrom', 'failedTo', 'ids'])
      or filter -> k.name = 'null';
  if strangers is not null then
    raise exception 'a plan has no filter %', strangers using errcode = '22023',
      hint = 'Filters: subscription, stream, eventType, reason, errorCode, fingerprint, orderingKey, failedFrom, failedTo, ids.';
  end if;
  wanted_ids := array(select i.id::bigint from jsonb_array_elements_text(filter -> 'ids') as i(id));
  perform {schema}.outbox_require_open_letters(wanted_ids);
  -- Plans that nobody began, or looks after any more, are not kept for ever: what was done is in the operator log.
  with forgotten as (
    delete from {schema}.outbox_redrive_plan p
     where (p.state = 'planned' and p.expires_at < clock_timestamp() - interval '7 days')
        or p.updated_at < clock_timestamp() - interval '30 days'
    returning p.id
  )
  delete from {schema}.outbox_redrive_item i using forgotten f where i.plan_id = f.id;
  insert into {schema}.outbox_redrive_plan (filter) values (filter) returning id into plan;
  with matching as materialized (
    select l.id, l.subscription_id, l.position, l.event_id, l.event_type from {schema}.outbox_dead_letter l
     where not l.resolved
       and (filter ->> 'subscription' is null or l.subscription = filter ->> 'subscription')
       and (filter ->> 'stream' is null or l.stream = filter ->> 'stream')
       and (filter ->> 'eventType' is null or l.event_type = filter ->> 'eventType')
       and (filter ->> 'reason' is null or l.reason = filter ->> 'reason')
       and (filter ->> 'errorCode' is null or l.error_code = filter ->> 'errorCode')
       and (filter ->> 'fingerprint' is null or l.fingerprint = filter ->> 'fingerprint')
       and (filter ->> 'orderingKey' is null or l.ordering_key = filter ->> 'orderingKey')
       and (filter ->> 'failedFrom' is null or l.failed_at >= (filter ->> 'failedFrom')::timestamptz)
       and (filter ->> 'failedTo' is null or l.failed_at < (filter ->> 'failedTo')::timestamptz)
       and (filter -> 'ids' is null or l.id = any (wanted_ids))
  ),
  reachable as (
    insert into {schema}.outbox_redrive_item (plan_id, letter_id, subscription_id, lane, position, event_id, event_type,
           ordering_key, state)
    select plan, m.id, d.subscription_id, d.lane, d.id, m.event_id, m.event_type, d.ordering_key,
           case when d.ordering_key is not null and row_number() over (
                  partition by d.subscription_id, d.ordering_key order by d.id, m.id) > 1
                then 'queued' else 'waiting' end
      from matching m
      join {schema}.outbox_subscription s on s.id = m.subscription_id and s.state <> 'retired'
      join {schema}.outbox_delivery d on d.id = m.position and d.subscription_id = m.subscription_id
       and d.status = 'DEAD'
    returning 1
  )
  select (select count(*) from matching), (select count(*) from reachable) into found_letters, reachable_letters;
  if reachable_letters = 0 then
    raise exception 'no open dead letter that can be delivered again matches' using errcode = 'P0002',
      hint = 'Look at what is there: the filter may be too narrow, or its subscription retired.';
  end if;
  update {schema}.outbox_redrive_plan p
     set planned = reachable_letters, unreachable = found_letters - reachable_letters,
         reordered = {schema}.outbox_mark_reordered(plan)
   where p.id = plan;
  return plan;
end
  $commitpost$;

-- Begins to apply a plan, goes on after a crash, or takes part in what somebody else applies: the settings of whoever
-- said them last hold for all. One that stopped by itself goes on only if that is wanted.
create function {schema}.outbox_begin_redrive(
    plan bigint, operator text, rate double precision default null, at_once integer default 100,
    stop_share double precision default 0.5, min_sample integer default 20, resume boolean default false)
  returns text language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  p {schema}.outbox_redrive_plan;
begin
  perform {schema}.outbox_require_operator(operator);
  perform 1 from {schema}.outbox_redrive_plan r where r.id = plan for update;
  if not found then
    raise exception 'plan % does not exist', plan using errcode = 'P0002';
  end if;
  -- What was on its way when it stopped has ended since, and is not held against what comes now.
  perform {schema}.outbox_judge_redrive(plan);
  select * into p from {schema}.outbox_redrive_plan r where r.id = plan;
  if p.state = 'done' then
    return p.state;
  end if;
  if p.state = 'cancelled' then
    raise exception 'plan % was cancelled', plan using errcode = '55000', constraint = 'plan-cancelled',
      detail = json_build_object('plan', plan), hint = 'Make a new one.';
  end if;
  if p.state = 'planned' and p.expires_at <= clock_timestamp() then
    raise exception 'plan % has expired', plan using errcode = '55000', constraint = 'plan-expired',
      detail = json_build_object('plan', plan),
      hint = 'What it counted may be long ago: make a new one.';
  end if;
  if p.state = 'stopped' and not resume then
    raise exception 'plan % stopped by itself: % of % failed again', plan, p.died, p.succeeded + p.died
      using errcode = '55000', constraint = 'plan-stopped',
            detail = json_build_object('plan', plan, 'died', p.died, 'ended', p.succeeded + p.died),
            hint = 'Once the cause is gone, ask for it to be resumed.';
  end if;
  update {schema}.outbox_redrive_plan r
     set state = 'applying', applied_by = operator, rate = outbox_begin_redrive.rate,
         at_once = outbox_begin_redrive.at_once, stop_share = outbox_begin_redrive.stop_share,
         min_sample = outbox_begin_redrive.min_sample,
         judged_before = case when p.state = 'stopped' then p.succeeded + p.died else p.judged_before end,
         died_before = case when p.state = 'stopped' then p.died else p.died_before end,
         updated_at = clock_timestamp()
   where r.id = plan;
  return 'applying';
end
  $commitpost$;

-- Lets the next of a key have its turn once none of it is on its way, or gives up those that are left: what died again
-- or is blocked stands before them.
create function {schema}.outbox_next_redrive(plan bigint, subscription integer, key text, is_blocked boolean)
  returns integer language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  given_up integer := 0;
begin
  if is_blocked then
    update {schema}.outbox_redrive_item i set state = 'skipped', reason = 'behind'
     where i.plan_id = plan and i.subscription_id = subscription and i.ordering_key = key
       and i.state in ('waiting', 'queued');
    get diagnostics given_up = row_count;
    return given_up;
  end if;
  perform 1 from {schema}.outbox_redrive_item i
    where i.plan_id = plan and i.subscription_id = subscription and i.ordering_key = key
      and i.state in ('waiting', 'driven') limit 1;
  if not found then
    update {schema}.outbox_redrive_item i set state = 'waiting'
     where i.plan_id = plan and i.letter_id = (
       select q.letter_id from {schema}.outbox_redrive_item q
        where q.plan_id = plan and q.subscription_id = subscription and q.ordering_key = key and q.state = 'queued'
        order by q.position, q.letter_id limit 1);
  end if;
  return 0;
end
  $commitpost$;

-- Finds out what became of what is on its way. A delivery that has a newer dead letter died again; one that is gone was
-- handled and forgotten; one that stands behind a DEAD delivery of its key waits for a person.
create function {schema}.outbox_judge_redrive(plan bigint) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  ended record;
  given_up integer := 0;
begin
  for ended in
    with judged as materialized (
      select i.letter_id,
             case when exists (select 1 from {schema}.outbox_dead_letter n
                                where n.event_id = i.event_id and n.subscription_id = i.subscription_id
                                  and n.id > i.letter_id) then 'dead'
                  when d.id is null or d.status = 'DONE' then 'done'
                  when d.status = 'DEAD' then 'dead'
                  when d.status = 'PENDING' and {schema}.outbox_is_behind_dead(
                         i.subscription_id, i.lane, i.ordering_key, i.position) then 'blocked' end as fate
        from {schema}.outbox_redrive_item i
        left join {schema}.outbox_delivery d on d.id = i.position and d.subscription_id = i.subscription_id
       where i.plan_id = plan and i.state = 'driven'
    ),
    changed as (
      update {schema}.outbox_redrive_item i set state = j.fate from judged j
       where i.plan_id = plan and i.letter_id = j.letter_id and j.fate is not null
      returning i.subscription_id, i.ordering_key, i.state
    ),
    counted as (
      update {schema}.outbox_redrive_plan p
         set succeeded = p.succeeded + n.succeeded, died = p.died + n.died, blocked = p.blocked + n.blocked,
             updated_at = clock_timestamp()
        from (select count(*) filter (where c.state = 'done') as succeeded,
                     count(*) filter (where c.state = 'dead') as died,
                     count(*) filter (where c.state = 'blocked') as blocked, count(*) as ended from changed c) n
       where p.id = plan and n.ended > 0
    )
    select c.subscription_id, c.ordering_key,
           bool_or(c.state = 'blocked' or c.state = 'dead' and s.on_dead = 'block') as is_blocked
      from changed c join {schema}.outbox_subscription s on s.id = c.subscription_id
     where c.ordering_key is not null
     group by c.subscription_id, c.ordering_key
  loop
    given_up := given_up
      + {schema}.outbox_next_redrive(plan, ended.subscription_id, ended.ordering_key, ended.is_blocked);
  end loop;
  update {schema}.outbox_redrive_plan p set skipped = p.skipped + given_up where p.id = plan and given_up > 0;
end
  $commitpost$;

-- What is to be done with one letter of a plan now: 'go', 'later' while somebody else has it locked, or why not.
create function {schema}.outbox_redrive_fate(item {schema}.outbox_redrive_item) returns text
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  is_resolved boolean;
  delivery_status text;
begin
  select l.resolved into is_resolved from {schema}.outbox_dead_letter l where l.id = item.letter_id;
  if not found then
    return 'gone';
  end if;
  if is_resolved then
    return 'resolved';
  end if;
  perform 1 from {schema}.outbox_dead_letter l where l.id = item.letter_id and not l.resolved for update skip locked;
  if not found then
    return 'later';
  end if;
  perform 1 from {schema}.outbox_subscription s where s.id = item.subscription_id and s.state = 'retired';
  if found then
    return 'retired';
  end if;
  select d.status into delivery_status from {schema}.outbox_delivery d
   where d.id = item.position and d.subscription_id = item.subscription_id;
  if delivery_status is distinct from 'DEAD' then
    return 'gone';
  end if;
  perform 1 from {schema}.outbox_delivery d
    where d.id = item.position and d.subscription_id = item.subscription_id and d.status = 'DEAD'
      for update skip locked;
  if not found then
    return 'later';
  end if;
  return case when {schema}.outbox_is_behind_dead(item.subscription_id, item.lane, item.ordering_key, item.position)
              then 'behind' else 'go' end;
end
  $commitpost$;

-- Re-drives the next of a plan, at most so many. Those of one key go as a run: due at one instant, they are handled in
-- the order of their positions, one at a time, and a new event of the key waits behind all of them.
create function {schema}.outbox_drive_next(plan bigint, operator text, note text, most integer, out driven integer)
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  head {schema}.outbox_redrive_item;
  item {schema}.outbox_redrive_item;
  fate text;
  letters bigint[] := '{}';
  passed_over integer := 0;
begin
  for head in
    select i.* from {schema}.outbox_redrive_item i
     where i.plan_id = plan and i.state = 'waiting' order by i.position, i.letter_id limit most
  loop
    exit when cardinality(letters) >= most;
    fate := null;
    for item in
      select i.* from {schema}.outbox_redrive_item i
       where i.plan_id = plan and i.letter_id = any (
         case when head.ordering_key is null then array[head.letter_id] else array(
           select r.letter_id from {schema}.outbox_redrive_item r
            where r.plan_id = plan and r.subscription_id = head.subscription_id
              and r.ordering_key = head.ordering_key and r.state in ('waiting', 'queued')
            order by r.position, r.letter_id limit most - cardinality(letters)) end)
       order by i.position, i.letter_id
    loop
      fate := {schema}.outbox_redrive_fate(item);
      exit when fate = 'later';
      if fate = 'go' then
        perform {schema}.outbox_retry(item.letter_id, operator, note);
        letters := letters || item.letter_id;
        update {schema}.outbox_redrive_item i set state = 'driven'
         where i.plan_id = plan and i.letter_id = item.letter_id;
      else
        passed_over := passed_over + 1;
        update {schema}.outbox_redrive_item i set state = 'skipped', reason = fate
         where i.plan_id = plan and i.letter_id = item.letter_id;
        exit when fate = 'behind';
      end if;
    end loop;
    if head.ordering_key is not null then
      passed_over := passed_over
        + {schema}.outbox_next_redrive(plan, head.subscription_id, head.ordering_key, fate = 'behind');
    end if;
  end loop;
  update {schema}.outbox_delivery d set next_retry_at = now() from {schema}.outbox_redrive_item i
   where i.plan_id = plan and i.letter_id = any (letters) and i.ordering_key is not null
     and d.id = i.position and d.subscription_id = i.subscription_id and d.status = 'PENDING';
  driven := cardinality(letters);
  update {schema}.outbox_redrive_plan p
     set driven = p.driven + outbox_drive_next.driven, skipped = p.skipped + passed_over,
         next_at = clock_timestamp()
           + coalesce(outbox_drive_next.driven / p.rate, 0) * interval '1 second',
         updated_at = clock_timestamp()
   where p.id = plan;
  if driven > 0 then
    insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
      values (operator, 'redrive', jsonb_build_object('plan', plan, 'deadLetters', to_jsonb(letters)),
              outbox_drive_next.driven, outbox_drive_next.note);
  end if;
end
  $commitpost$;

-- One step of applying a plan, in one transaction: what became of those on their way, whether that is bad enough to
-- stop, then as many more as the settings allow. Any number may call it at once: one after the other, at one rate.
create function {schema}.outbox_step_redrive(
    plan bigint, operator text, note text default null,
    out plan_state text, out driven integer, out wait_ms double precision)
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  p {schema}.outbox_redrive_plan;
  judged integer;
  died integer;
  places integer;
begin
  driven := 0;
  wait_ms := 0;
  perform {schema}.outbox_require_operator(operator);
  perform 1 from {schema}.outbox_redrive_plan r where r.id = plan for update;
  if not found then
    raise exception 'plan % does not exist', plan using errcode = 'P0002';
  end if;
  perform {schema}.outbox_judge_redrive(plan);
  select * into p from {schema}.outbox_redrive_plan r where r.id = plan;
  plan_state := p.state;
  if p.state <> 'applying' then
    return;
  end if;
  died := p.died - p.died_before;
  judged := p.succeeded + p.died - p.judged_before;
  if judged >= p.min_sample and died >= p.stop_share * judged then
    plan_state := 'stopped';
    insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
      values (operator, 'redrive-stop', jsonb_build_object('plan', plan, 'failedAgain', died, 'ended', judged), 0,
              outbox_step_redrive.note);
  elsif p.driven = p.succeeded + p.died + p.blocked and not exists (
    select 1 from {schema}.outbox_redrive_item i where i.plan_id = plan and i.state = 'waiting') then
    plan_state := 'done';
  end if;
  if plan_state <> 'applying' then
    update {schema}.outbox_redrive_plan r set state = plan_state, updated_at = clock_timestamp() where r.id = plan;
    return;
  end if;
  wait_ms := greatest(extract(epoch from p.next_at - clock_timestamp()) * 1000, 0);
  -- About five batches a second, so that a rate is a rate and no rush.
  places := least(p.at_once - (p.driven - p.succeeded - p.died - p.blocked), ceil(coalesce(p.rate, 500) / 5));
  if wait_ms = 0 and places > 0 then
    driven := {schema}.outbox_drive_next(plan, operator, note, places);
  end if;
end
  $commitpost$;

-- Ends a plan: nothing more of it is re-driven. What is on its way goes on.
create function {schema}.outbox_cancel_redrive(plan bigint, operator text, note text default null) returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  p {schema}.outbox_redrive_plan;
begin
  perform {schema}.outbox_require_operator(operator);
  select * into p from {schema}.outbox_redrive_plan r where r.id = plan for update;
  if not found then
    raise exception 'plan % does not exist', plan using errcode = 'P0002';
  end if;
  if p.state = 'cancelled' then
    return false;
  end if;
  if p.state = 'done' then
    raise exception 'plan % is done', plan using errcode = '55000', constraint = 'plan-done',
      detail = json_build_object('plan', plan), hint = 'There is nothing left to cancel.';
  end if;
  update {schema}.outbox_redrive_plan r set state = 'cancelled', updated_at = clock_timestamp() where r.id = plan;
  insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
    values (operator, 'redrive-cancel', jsonb_build_object('plan', plan), p.planned - p.driven - p.skipped,
            outbox_cancel_redrive.note);
  return true;
end
  $commitpost$;

-- == policies =====================================================================================

-- Re-drives what a policy of the subscription's own code names, once its time has come by this clock. Any number of
-- workers may call it at once: each letter is taken by one. How often, is counted over all letters of the delivery and
-- all policies; then it is left to a person. Of one key only the first goes that will go at all: neither one that was
-- given up, nor one whose code is not named (any more), nor what a person decided keeps later ones waiting; one that was
-- not looked at yet does. What a person decided (moved aside, retired) no policy undoes, whatever codes it names.
create function {schema}.outbox_redrive_by_policy(
    of_subscription integer, policy text, codes text[], patterns text[], after_ms double precision,
    factor double precision, at_most integer, out redriven integer, out left_to_person integer)
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  letter record;
begin
  redriven := 0;
  if policy !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' then
    raise exception 'a policy needs a name' using errcode = '22023';
  end if;
  with met as (
    update {schema}.outbox_dead_letter l
       set redrive_at = (
             select case when count(*) >= at_most then 'infinity'
                    else l.failed_at + least(after_ms * factor ^ count(*), 315576000000) * interval '1 millisecond' end
               from {schema}.outbox_dead_letter e
              where e.event_id = l.event_id and e.subscription_id = l.subscription_id and e.position = l.position
                and e.resolved_by like 'policy:%'),
           updated_at = clock_timestamp()
     where l.ctid = any (array(
       select u.ctid from {schema}.outbox_dead_letter u
        where u.subscription_id = of_subscription and not u.resolved and u.redrive_at is null
          and (u.error_code = any (codes) or u.error_code like any (patterns))
          and u.error_code not in ('MOVED_ASIDE', 'SUBSCRIPTION_RETIRED')
        limit 1000
          for update skip locked))
    returning l.redrive_at
  )
  select count(*) filter (where m.redrive_at = 'infinity') into left_to_person from met m;
  -- The first of a key is found once for all that are due of it (Memoize), not by each of them among all that stay. Its
  -- condition is "not before" rather than "the same", because the planner takes that for true often enough to read no more
  -- than the limit asks for.
  for letter in
    select l.id, l.position from {schema}.outbox_dead_letter l
      left join lateral (
        select b.position from {schema}.outbox_dead_letter b
         where b.subscription_id = of_subscription and b.ordering_key = l.ordering_key and not b.resolved
           and (b.redrive_at is null or b.redrive_at < 'infinity')
           and (b.error_code = any (codes) or b.error_code like any (patterns))
           and b.error_code not in ('MOVED_ASIDE', 'SUBSCRIPTION_RETIRED')
         order by b.position limit 1) first on true
     where l.subscription_id = of_subscription and not l.resolved and l.redrive_at < 'infinity'
       and l.redrive_at <= (select clock_timestamp())
       and (l.error_code = any (codes) or l.error_code like any (patterns))
       and l.error_code not in ('MOVED_ASIDE', 'SUBSCRIPTION_RETIRED')
       and (l.ordering_key is null or first.position >= l.position)
     order by l.redrive_at, l.position
     limit 100
       for update of l skip locked
  loop
    perform 1 from {schema}.outbox_delivery d join {schema}.outbox_subscription s on s.id = d.subscription_id
      where d.id = letter.position and d.subscription_id = of_subscription and d.status = 'DEAD' and s.state <> 'retired';
    if not found then
      update {schema}.outbox_dead_letter l set redrive_at = 'infinity' where l.id = letter.id;
      left_to_person := left_to_person + 1;
      continue;
    end if;
    -- Whoever has it locked is not waited for: the next time will do.
    perform 1 from {schema}.outbox_delivery d
      where d.id = letter.position and d.subscription_id = of_subscription and d.status = 'DEAD'
        for update skip locked;
    if found then
      perform {schema}.outbox_deliver_again(letter.id, 'policy:' || policy, null);
      redriven := redriven + 1;
    end if;
  end loop;
end
  $commitpost$;

-- == who may call what ============================================================================

-- As in 0002: functions are open to everybody unless that is taken back.
revoke all on function
  {schema}.outbox_is_behind_dead(integer, smallint, text, bigint),
  {schema}.outbox_move_waiting({schema}.outbox_subscription, smallint, text, integer),
  {schema}.outbox_move_aside(text, text, text, text, integer),
  {schema}.outbox_mark_reordered(bigint), {schema}.outbox_require_open_letters(bigint[]),
  {schema}.outbox_plan_redrive(jsonb),
  {schema}.outbox_begin_redrive(bigint, text, double precision, integer, double precision, integer, boolean),
  {schema}.outbox_next_redrive(bigint, integer, text, boolean), {schema}.outbox_judge_redrive(bigint),
  {schema}.outbox_redrive_fate({schema}.outbox_redrive_item), {schema}.outbox_drive_next(bigint, text, text, integer),
  {schema}.outbox_step_redrive(bigint, text, text), {schema}.outbox_cancel_redrive(bigint, text, text),
  {schema}.outbox_redrive_by_policy(integer, text, text[], text[], double precision, double precision, integer)
  from public;
