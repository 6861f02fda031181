-- How things end: subscriptions that are retired.

-- Nobody will ever decide on it: its subscription is retired, and no dead letter of it is open.
-- Not of a row of outbox_delivery: its type would be bound to a table that partitioning puts in another's place.
create function {schema}.outbox_is_buried(status text, of_subscription integer, of_event uuid) returns boolean
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select status = 'DEAD'
       and exists (select 1 from {schema}.outbox_subscription s where s.id = of_subscription and s.state = 'retired')
       and not exists (select 1 from {schema}.outbox_dead_letter l
                        where l.event_id = of_event and l.subscription_id = of_subscription and not l.resolved)
  $commitpost$;

-- What was read before a lock was had must not decide: only READ COMMITTED reads again.
create function {schema}.outbox_require_read_committed() returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    raise exception 'this needs a transaction that is READ COMMITTED' using errcode = '25001',
      hint = 'begin isolation level read committed';
  end if;
end
  $commitpost$;

-- Registrations, retirements and retention, one at a time. Publishers never wait for it.
create function {schema}.outbox_lock_registry() returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  perform {schema}.outbox_require_read_committed();
  perform pg_advisory_xact_lock(hashtextextended('commitpost registry ' || {schema:literal}, 0));
end
  $commitpost$;

-- == retirement ===================================================================================

-- One that is removed takes what is open of it out of everybody's sight: nobody would claim it, count it or miss it.
create function {schema}.outbox_refuse_subscription_removal() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  raise exception 'subscriptions are retired, and never removed' using errcode = '55000',
    hint = 'commitpost retire NAME, or select outbox_retire(name, operator). What was delivered can still be proven then.';
end
  $commitpost$;

create trigger outbox_subscription_removal before delete or truncate on {schema}.outbox_subscription
  for each statement execute function {schema}.outbox_refuse_subscription_removal();

-- How many deliveries of a subscription are not done. In words that the indexes of what is fresh, due and suspect answer,
-- and not the whole table.
create function {schema}.outbox_open_deliveries(subscription integer) returns bigint
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select (select count(*) from {schema}.outbox_delivery d where d.subscription_id = subscription and d.fresh)
         + (select count(*) from {schema}.outbox_delivery d
             where d.subscription_id = subscription and d.held and not d.suspect and d.next_retry_at is not null)
         + (select count(*) from {schema}.outbox_delivery d
             where d.subscription_id = subscription and d.held and d.suspect)
         + (select count(*) from {schema}.outbox_in_hand h where h.subscription_id = subscription)
  $commitpost$;

-- Sets aside what is still open of a retired subscription: DEAD, with a dead letter that is resolved by whoever retired
-- it. Nothing vanishes, and nothing is left to decide. What somebody has locked is left for the next time: a handler
-- may be completing it, and whoever waited would keep all registrations waiting. It locks rows and looks up their events:
-- session-settings.ts says why it must not choose partitions meanwhile.
create function {schema}.outbox_discard(retired {schema}.outbox_subscription, note text) returns integer
  language plpgsql set search_path = pg_catalog, pg_temp set enable_partition_pruning = off
  as $commitpost$
declare
  discarded integer;
begin
  with changed as (
    update {schema}.outbox_delivery d
       set status = 'DEAD', fresh = false, held = false, held_since = null, suspect = false, next_retry_at = null,
           locked_by = null, locked_until = null, lease_token = null, last_error_code = 'SUBSCRIPTION_RETIRED',
           last_error_message = case d.status
             when 'PENDING' then 'Not delivered: its subscription was retired.'
             else 'Its subscription was retired while worker ' || d.locked_by
               || ' had it in hand: it may or may not have been handled.' end,
           updated_at = clock_timestamp()
     where d.subscription_id = retired.id and d.id = any (array(
       select f.id from {schema}.outbox_delivery f
        where f.subscription_id = retired.id and f.id = any (
            array(select d.id from {schema}.outbox_delivery d where d.subscription_id = retired.id and d.fresh)
            || array(select d.id from {schema}.outbox_delivery d
                      where d.subscription_id = retired.id and d.held and not d.suspect and d.next_retry_at is not null)
            || array(select d.id from {schema}.outbox_delivery d
                      where d.subscription_id = retired.id and d.held and d.suspect)
            || array(select h.id from {schema}.outbox_in_hand h where h.subscription_id = retired.id))
          and f.status in ('PENDING', 'PROCESSING')
          for update skip locked))
    returning d.*
  )
  insert into {schema}.outbox_dead_letter (subscription, subscription_id, lane, position, event_id, stream, event_type,
         schema_version, aggregate_type, aggregate_id, ordering_key, payload, headers, occurred_at, error_code,
         error_message, attempt_history, retry_count, resolved, resolved_at, resolved_by, note)
  select retired.name, c.subscription_id, c.lane, c.id, e.event_id, e.stream, e.event_type,
         e.schema_version, e.aggregate_type, e.aggregate_id, c.ordering_key, e.payload, e.headers, e.occurred_at,
         c.last_error_code, c.last_error_message, coalesce(c.attempt_history, '[]'), greatest(c.attempt_count - 1, 0),
         true, clock_timestamp(), retired.retired_by, outbox_discard.note
    from changed c join {schema}.outbox_event e on e.event_id = c.event_id;
  get diagnostics discarded = row_count;
  return discarded;
end
  $commitpost$;

-- Stops claims of a subscription for every worker at once, or lets them go on. Recorded also where nothing changes.
create function {schema}.outbox_set_paused(
    subscription_name text, paused boolean, operator text, note text default null)
  returns {schema}.outbox_subscription
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  changed {schema}.outbox_subscription;
begin
  perform {schema}.outbox_require_operator(operator);
  update {schema}.outbox_subscription s
     set paused_at = case when paused then clock_timestamp() end, paused_by = case when paused then operator end,
         updated_at = clock_timestamp()
   where s.name = subscription_name and s.state <> 'retired' returning * into changed;
  if not found then
    raise exception 'subscription "%" does not exist', subscription_name using errcode = 'P0002';
  end if;
  insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
    values (operator, case when paused then 'pause' else 'resume' end,
            jsonb_build_object('subscription', changed.name), 1, outbox_set_paused.note);
  return changed;
end
  $commitpost$;

-- Ends a subscription. Publishers make no more deliveries for it; its name may be given again. It waits for nobody for
-- long, because every registration waits for it.
create function {schema}.outbox_retire(
    subscription_name text, operator text, note text default null, discard boolean default false,
    force boolean default false, out discarded integer, out unresolved integer, out locked integer)
  language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s'
  as $commitpost$
declare
  retired {schema}.outbox_subscription;
  serving text;
  waiting bigint;
begin
  perform {schema}.outbox_require_operator(operator);
  perform {schema}.outbox_lock_registry();
  select * into retired from {schema}.outbox_subscription s
   where s.name = subscription_name and s.state <> 'retired' for update;
  if not found then
    raise exception 'subscription "%" does not exist', subscription_name using errcode = 'P0002';
  end if;
  select string_agg(w.worker_id, ', ' order by w.worker_id) into serving from {schema}.outbox_worker w
   where w.until > clock_timestamp() and w.subscription_ids @> array[retired.id];
  if serving is not null and not force then
    raise exception 'subscription "%" is served by %', subscription_name, serving using errcode = '55000',
      constraint = 'subscription-served',
      detail = json_build_object('subscription', subscription_name, 'workers', serving),
      hint = 'Deploy workers without it first: they would register it again. By force it is retired all the same.';
  end if;
  waiting := {schema}.outbox_open_deliveries(retired.id);
  if waiting > 0 and not discard then
    raise exception 'subscription "%" has open deliveries: %', subscription_name, waiting
      using errcode = '55000', constraint = 'subscription-unfinished',
            detail = json_build_object('subscription', subscription_name, 'open', waiting),
            hint = 'Let a worker finish them, or discard them: each is kept as a dead letter that is resolved.';
  end if;
  -- As a registration does: a publisher with an older snapshot would still make deliveries for it.
  perform setval({schema:literal} || '.outbox_registry_xid', pg_current_xact_id()::text::bigint);
  update {schema}.outbox_subscription s
     set state = 'retired', retired_at = clock_timestamp(), retired_by = operator, barrier = null, served_to = null,
         updated_at = clock_timestamp()
   where s.id = retired.id returning * into retired;
  -- Whoever still owns a lane learns it from its next heartbeat. By number, as everybody does who locks several.
  perform 1 from {schema}.outbox_lane l where l.subscription_id = retired.id order by l.lane for update;
  delete from {schema}.outbox_lane l where l.subscription_id = retired.id;
  discarded := {schema}.outbox_discard(retired, note);
  -- These are counted with the act of the step that sets them aside.
  locked := {schema}.outbox_open_deliveries(retired.id);
  select count(*) into unresolved from {schema}.outbox_dead_letter l
   where l.subscription_id = retired.id and not l.resolved;
  insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
    values (operator, 'retire', jsonb_build_object('subscription', retired.name, 'subscriptionId', retired.id),
            discarded, outbox_retire.note);
end
  $commitpost$;

-- One step. An event whose transaction was open when its subscription was retired may have a delivery that was not
-- there to be set aside, and somebody may have had one locked. Once every such transaction has ended, they are. Returns
-- how many subscriptions are not that far.
create function {schema}.outbox_close_retired() returns integer
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  retired {schema}.outbox_subscription;
  late integer;
begin
  for retired in
    select * from {schema}.outbox_subscription s
     where s.retired_at is not null and s.closed_at is null and s.barrier < pg_snapshot_xmin(pg_current_snapshot())
       for update skip locked
  loop
    late := {schema}.outbox_discard(retired, 'published or locked while its subscription was retired');
    if late > 0 then
      insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
        values (retired.retired_by, 'retire',
                jsonb_build_object('subscription', retired.name, 'subscriptionId', retired.id), late,
                'published or locked while it was retired');
    end if;
    if {schema}.outbox_open_deliveries(retired.id) = 0 then
      update {schema}.outbox_subscription s set closed_at = clock_timestamp() where s.id = retired.id;
      -- Nobody serves it, and so nobody looks at what lapses.
      delete from {schema}.outbox_lease l
       where l.ctid = any (array(
         select o.ctid from {schema}.outbox_lease o where o.subscription_id = retired.id for update skip locked));
    end if;
  end loop;
  -- Not in the transaction that retired it: only an id taken after its commit is above those of all who missed it.
  update {schema}.outbox_subscription s set barrier = pg_current_xact_id()
   where s.ctid = any (array(
     select o.ctid from {schema}.outbox_subscription o
      where o.retired_at is not null and o.closed_at is null
        and (o.barrier is null or o.barrier >= pg_snapshot_xmax(pg_current_snapshot()))
        for update skip locked));
  return (select count(*) from {schema}.outbox_subscription s where s.retired_at is not null and s.closed_at is null);
end
  $commitpost$;

-- == who may call what ============================================================================

-- As in 0002: functions are open to everybody unless that is taken back.
revoke all on function
  {schema}.outbox_is_buried(text, integer, uuid), {schema}.outbox_require_read_committed(),
  {schema}.outbox_lock_registry(), {schema}.outbox_refuse_subscription_removal(),
  {schema}.outbox_open_deliveries(integer), {schema}.outbox_discard({schema}.outbox_subscription, text),
  {schema}.outbox_set_paused(text, boolean, text, text), {schema}.outbox_retire(text, text, text, boolean, boolean),
  {schema}.outbox_close_retired()
  from public;
