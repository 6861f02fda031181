-- Dead letters to be read and cared for: why each is dead, what it has in common with others, how one is amended, how
-- resolved ones go.

-- == what they have in common =====================================================================

-- The message without what differs from one event to the next: quoted values, ids, hexadecimal and other numbers. What
-- the retries put before it goes too, so that a changed number of attempts does not divide a group.
create function {schema}.outbox_error_pattern(message text) returns text
  language sql immutable parallel safe set search_path = pg_catalog, pg_temp
  as $commitpost$
    select left(btrim(
      regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
        message,
        '^(All \d+ attempts failed, the last|The only attempt failed) with: ', ''),
        '"[^"]*"|`[^`]*`', '<value>', 'g'),
        '(^|[^[:alnum:]])''[^'']*''', '\1<value>', 'g'),
        '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', '<uuid>', 'gi'),
        '\m(0x[0-9a-f]+|(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{8,})\M', '<hex>', 'gi'),
        '\d+([.,:]\d+)*', '<n>', 'g'),
        '\s+', ' ', 'g')), 500)
  $commitpost$;

create function {schema}.outbox_fingerprint(error_code text, message text) returns text
  language sql immutable parallel safe set search_path = pg_catalog, pg_temp
  as $commitpost$
    select left(md5(error_code || E'\n' || {schema}.outbox_error_pattern(message)), 16)
  $commitpost$;

-- Why a delivery is dead, in a closed list of words: an error's own code may be anything that a handler threw.
create function {schema}.outbox_dead_reason(error_code text, dead_position bigint, dead_subscription integer)
  returns text language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select case
      when error_code in ('NO_HANDLER', 'UNKNOWN_EVENT_TYPE', 'PAYLOAD_INVALID', 'UPCAST_FAILED', 'NON_RETRYABLE',
                          'CRASHED', 'SUBSCRIPTION_RETIRED', 'MOVED_ASIDE', 'NO_SUBSCRIPTION') then error_code
      when exists (select 1 from {schema}.outbox_delivery d
                    where d.id = dead_position and d.subscription_id = dead_subscription
                      and d.attempt_count >= d.max_attempts) then 'RETRIES_EXHAUSTED'
      else 'NON_RETRYABLE' end
  $commitpost$;

alter table {schema}.outbox_dead_letter add column reason text, add column fingerprint text;
update {schema}.outbox_dead_letter l
   set reason = {schema}.outbox_dead_reason(l.error_code, l.position, l.subscription_id),
       fingerprint = {schema}.outbox_fingerprint(l.error_code, l.error_message);
alter table {schema}.outbox_dead_letter
  alter column reason set not null,
  alter column fingerprint set not null,
  add constraint outbox_dead_letter_reason check (reason in (
    'NO_HANDLER', 'UNKNOWN_EVENT_TYPE', 'PAYLOAD_INVALID', 'UPCAST_FAILED', 'NON_RETRYABLE', 'RETRIES_EXHAUSTED',
    'CRASHED', 'SUBSCRIPTION_RETIRED', 'MOVED_ASIDE', 'NO_SUBSCRIPTION'));

-- By a trigger, because dead letters are written by several statements and, in a pinch, by hand.
create function {schema}.outbox_describe_letter() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  new.reason := {schema}.outbox_dead_reason(new.error_code, new.position, new.subscription_id);
  new.fingerprint := {schema}.outbox_fingerprint(new.error_code, new.error_message);
  return new;
end
  $commitpost$;

create trigger outbox_dead_letter_described before insert on {schema}.outbox_dead_letter
  for each row execute function {schema}.outbox_describe_letter();

-- == found quickly ================================================================================

-- Each filter of a list, with the id that pages go by.
create index outbox_dead_letter_subscription on {schema}.outbox_dead_letter (subscription, id);
create index outbox_dead_letter_stream on {schema}.outbox_dead_letter (stream, id);
create index outbox_dead_letter_code on {schema}.outbox_dead_letter (error_code, id);
create index outbox_dead_letter_why on {schema}.outbox_dead_letter (reason, id);
create index outbox_dead_letter_aggregate on {schema}.outbox_dead_letter (aggregate_type, aggregate_id, id);
create index outbox_dead_letter_fingerprint on {schema}.outbox_dead_letter (fingerprint, id);
-- All that grouping the open ones reads, so that it does not read their payloads.
create index outbox_dead_letter_groups on {schema}.outbox_dead_letter (fingerprint, subscription, event_type)
  include (id, failed_at) where not resolved;
create index outbox_dead_letter_blocking on {schema}.outbox_dead_letter (id)
  where not resolved and ordering_key is not null;
create index outbox_dead_letter_age on {schema}.outbox_dead_letter (resolved_at) where resolved;
-- What was decided on a dead letter is asked for with each that is shown.
create index outbox_operator_log_letter on {schema}.outbox_operator_log ((target ->> 'deadLetter'))
  where target ->> 'deadLetter' is not null;

-- == how they go ==================================================================================

create function {schema}.outbox_refuse_letter_removal() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  raise exception 'a dead letter that nobody has decided on cannot be removed'
    using errcode = '55000', hint = 'Retry, amend or resolve it. Resolved ones are removed with outbox_purge.';
end
  $commitpost$;

create trigger outbox_dead_letter_removal before delete on {schema}.outbox_dead_letter
  for each row when (not old.resolved) execute function {schema}.outbox_refuse_letter_removal();
create trigger outbox_dead_letter_truncation before truncate on {schema}.outbox_dead_letter
  for each statement execute function {schema}.outbox_refuse_letter_removal();

-- One batch, oldest first: removes dead letters that were resolved longer ago than that. What somebody has locked is
-- left for the next time, and so is what a policy re-drove while that is not over: how often it did is counted by these.
create function {schema}.outbox_purge(
    older_than interval, operator text, note text default null, subscription_name text default null,
    most integer default 1000)
  returns integer language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  purged integer;
  first_id bigint;
  last_id bigint;
begin
  perform {schema}.outbox_require_operator(operator);
  if older_than is null or older_than < interval '0' or most is null or most not between 1 and 100000 then
    raise exception 'a purge needs an age of 0 or more and a batch of 1 to 100000' using errcode = '22023';
  end if;
  with gone as (
    delete from {schema}.outbox_dead_letter l
     where l.ctid = any (array(
       select r.ctid from {schema}.outbox_dead_letter r
        where r.resolved and r.resolved_at < clock_timestamp() - older_than
          and (subscription_name is null or r.subscription = subscription_name)
          and not (r.resolved_by like 'policy:%' and exists (
            select 1 from {schema}.outbox_delivery d
             where d.id = r.position and d.subscription_id = r.subscription_id and d.event_id = r.event_id
               and (d.status in ('PENDING', 'PROCESSING') or exists (
                 select 1 from {schema}.outbox_dead_letter o
                  where o.event_id = r.event_id and o.subscription_id = r.subscription_id
                    and o.position = r.position and not o.resolved))))
        order by r.resolved_at
        limit most
          for update skip locked))
    returning l.id
  )
  select count(*), min(g.id), max(g.id) into purged, first_id, last_id from gone g;
  if purged > 0 then
    insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
      values (operator, 'purge', jsonb_strip_nulls(jsonb_build_object('olderThanSeconds',
              extract(epoch from older_than), 'subscription', subscription_name, 'firstId', first_id,
              'lastId', last_id)), purged, outbox_purge.note);
  end if;
  return purged;
end
  $commitpost$;

-- == amending =====================================================================================

-- Events that stand in for one that could not be handled, for one subscription. No other ever gets them: the others
-- have, or had, the original.
create table {schema}.outbox_amendment (
  event_id        uuid        primary key,
  amended_from    uuid        not null,
  dead_letter     bigint      not null,
  subscription_id integer     not null,
  xid             xid8        not null default pg_current_xact_id(),
  created_at      timestamptz not null default clock_timestamp()
);
create index outbox_amendment_original on {schema}.outbox_amendment (amended_from);

-- Resolves a dead letter by an event with another payload, which takes the place of the dead one: at its position, with
-- its key and its number, delivered to its subscription only, before whatever waits behind it. The original stays as it
-- is. Returns the id of the new event.
create function {schema}.outbox_amend(
    letter_id bigint, amended_payload jsonb, operator text, note text default null,
    amended_version integer default null, amended_id uuid default null)
  returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  letter {schema}.outbox_dead_letter;
  original {schema}.outbox_event;
begin
  if amended_payload is null then
    raise exception 'an amended event needs a payload' using errcode = '22004';
  end if;
  perform {schema}.outbox_require_operator(operator);
  amended_id := coalesce(amended_id, {schema}.outbox_uuid_v7());
  letter := {schema}.outbox_close_dead_letter(
    letter_id, operator, concat_ws(' ', note, '[amended as event ' || amended_id || ']'), 'amend');
  perform 1 from {schema}.outbox_subscription s where s.id = letter.subscription_id and s.state <> 'retired';
  if not found then
    raise exception 'dead letter % is of subscription "%", which does not take events', letter_id, letter.subscription
      using errcode = '55000', constraint = 'letter-of-retired',
            detail = json_build_object('id', letter_id, 'subscription', letter.subscription), hint = 'Nobody would deliver it. Publish the event again, or resolve by hand.';
  end if;
  select * into original from {schema}.outbox_event e where e.event_id = letter.event_id;
  if not found then
    raise exception 'the event of dead letter % is gone', letter_id using errcode = '55000',
      constraint = 'letter-without-event', detail = json_build_object('id', letter_id),
      hint = 'Retention removed it. Publish it again, or resolve by hand.';
  end if;
  insert into {schema}.outbox_amendment (event_id, amended_from, dead_letter, subscription_id)
    values (amended_id, original.event_id, letter_id, letter.subscription_id);
  insert into {schema}.outbox_event (event_id, id, stream, event_type, schema_version, aggregate_type, aggregate_id,
         ordering_key, sequence, payload, headers, occurred_at)
    overriding system value
    values (amended_id, original.id, original.stream, original.event_type,
            coalesce(amended_version, original.schema_version), original.aggregate_type, original.aggregate_id,
            original.ordering_key, original.sequence, amended_payload,
            original.headers || jsonb_build_object('amendedFrom', original.event_id, 'causationId', original.event_id,
              'correlationId', coalesce(original.headers ->> 'correlationId', original.event_id::text)),
            original.occurred_at);
  -- What was said of the original stays with its dead letter: it may quote values of which this event knows nothing, so
  -- that nobody would mask them.
  update {schema}.outbox_delivery d
     set event_id = amended_id, status = 'PENDING', held = true, suspect = false, attempt_count = 0,
         next_retry_at = clock_timestamp(), created_at = clock_timestamp(), updated_at = clock_timestamp(),
         last_error_code = null, last_error_message = null, attempt_history = null
   where d.subscription_id = letter.subscription_id and d.lane = letter.lane and d.id = letter.position
     and d.status = 'DEAD';
  if not found then
    raise exception 'dead letter % has no DEAD delivery to amend', letter_id using errcode = '55000',
      constraint = 'letter-without-delivery', detail = json_build_object('id', letter_id),
      hint = 'Retention removed it. Publish the event again, or resolve by hand.';
  end if;
  return amended_id;
end
  $commitpost$;

-- == who may call what ============================================================================

-- As in 0002: functions are open to everybody unless that is taken back.
revoke all on function
  {schema}.outbox_error_pattern(text), {schema}.outbox_fingerprint(text, text),
  {schema}.outbox_dead_reason(text, bigint, integer), {schema}.outbox_describe_letter(),
  {schema}.outbox_refuse_letter_removal(), {schema}.outbox_purge(interval, text, text, text, integer),
  {schema}.outbox_amend(bigint, jsonb, text, text, integer, uuid)
  from public;
