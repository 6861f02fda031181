-- What the database itself enforces: fan-out, numbering, immutability, the state machine.

-- == fan-out: a plain INSERT is a complete publish ================================================

-- The column of an event that holds what it may not, or null. Texts are bounded because they are indexed elsewhere: one
-- that fits no index could never be set aside. Claims return an event as one text, its parts divided by U+001F.
create function {schema}.outbox_flaw(
    stream text, event_type text, schema_version integer, aggregate_type text, aggregate_id text, ordering_key text,
    headers jsonb)
  returns text language sql immutable parallel safe
  as $commitpost$
    select case
      when stream = '' or octet_length(stream) > 1000 or strpos(stream, E'\x1f') > 0 then 'stream'
      when event_type = '' or octet_length(event_type) > 1000 or strpos(event_type, E'\x1f') > 0 then 'event_type'
      when schema_version < 1 then 'schema_version'
      when aggregate_type = '' or octet_length(aggregate_type) > 1000 or strpos(aggregate_type, E'\x1f') > 0
        then 'aggregate_type'
      when aggregate_id = '' or octet_length(aggregate_id) > 1020 or strpos(aggregate_id, E'\x1f') > 0
        then 'aggregate_id'
      when octet_length(ordering_key) > 2030 or strpos(ordering_key, E'\x1f') > 0 then 'ordering_key'
      when jsonb_typeof(headers) <> 'object' then 'headers' end
  $commitpost$;

-- Asked for an event that may not be let through as it is. False for one that takes the place of another: it gets that
-- one's delivery, from outbox_amend.
create function {schema}.outbox_admits(
    event_id uuid, id bigint, stream text, event_type text, schema_version integer, aggregate_type text,
    aggregate_id text, ordering_key text, headers jsonb, hour_ago uuid)
  returns boolean language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  flaw text := {schema}.outbox_flaw(stream, event_type, schema_version, aggregate_type, aggregate_id, ordering_key, headers);
begin
  if flaw is not null then
    raise exception 'an event cannot have this %', flaw
      using errcode = '23514', column = flaw, constraint = 'outbox_event_' || flaw || '_check',
            hint = 'Names and ids are 1 to 1,000 bytes without the character U+001F, an ordering key is up to 2,030, '
                   'a version is at least 1, headers are an object.';
  end if;
  if {schema}.outbox_may_be_archived(event_id, hour_ago) then
    perform {schema}.outbox_refuse_archived(event_id, id);
  end if;
  if headers ? 'amendedFrom' then
    perform 1 from {schema}.outbox_amendment a
      where a.event_id = outbox_admits.event_id and a.xid = pg_current_xact_id();
    return not found;
  end if;
  return true;
end
  $commitpost$;

-- Remembers an event that no subscription wants. Always false, since nothing is delivered.
create function {schema}.outbox_note_unmatched(event_id uuid, stream text, event_type text) returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  insert into {schema}.outbox_unmatched (event_id, stream, event_type)
    values (outbox_note_unmatched.event_id, outbox_note_unmatched.stream, outbox_note_unmatched.event_type)
    on conflict do nothing;
  return false;
end
  $commitpost$;

create function {schema}.outbox_fan_out() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  registered xid8;
  is_stale boolean := false;
  hour_ago uuid := encode(int8send((date_part('epoch', clock_timestamp())::bigint - 3600) * 65536000)
                          || int8send(0), 'hex')::uuid;
begin
  -- Both are rare, and a question is paid for in every transaction.
  if current_setting('transaction_isolation') <> 'read committed' or current_setting('synchronous_commit') = 'off' then
    -- A transaction that reads an old snapshot does not see a subscription registered since, and the sweep of that one
    -- may be over: only a retry can help. Registrations are serialised, so whoever sees the last one sees them all.
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
      select r.last_value::text::xid8 into registered from {schema}.outbox_registry_xid r;
      if not pg_visible_in_snapshot(registered, pg_current_snapshot()) then
        begin
          perform pg_xact_status(registered);
          is_stale := true;
        exception when invalid_parameter_value then
          is_stale := false; -- an id this server has not come to: a restored backup, not a registration
        end;
      end if;
      if is_stale then
        raise exception 'a subscription was registered after this transaction began'
          using errcode = '40001', hint = 'Retry the transaction.';
      end if;
    end if;

    -- An event whose commit may be forgotten by a crash is not an event: raise durability for this transaction.
    if current_setting('synchronous_commit') = 'off' then
      perform set_config('synchronous_commit', 'on', true);
    end if;
  end if;

  -- One statement, since to begin one costs more than to run it, with few operators for the same reason. What may be wrong
  -- with an event is asked while it is read, roughly: long names are taken for a flaw. Where nobody subscribes to anything,
  -- as where only Debezium reads, nothing is unmatched, and that is asked once.
  insert into {schema}.outbox_delivery (subscription_id, lane, id, event_id, ordering_key, max_attempts)
    select s.id,
           case when s.lanes = 0 then 0::smallint
                else {schema}.outbox_lane_of(
                  {schema}.outbox_key_of(s.order_by, n.ordering_key, n.aggregate_type, n.aggregate_id), s.lanes) end,
           n.id, n.event_id,
           {schema}.outbox_key_of(s.order_by, n.ordering_key, n.aggregate_type, n.aggregate_id),
           s.max_attempts
      from published_now n
      left join {schema}.outbox_subscription s
        on s.state <> 'retired' and {schema}.outbox_matches(s.stream_like, s.event_types, n.stream, n.event_type)
     where case
             when '' in (n.stream, n.event_type, n.aggregate_type, n.aggregate_id) or n.schema_version < 1
                  or greatest(octet_length(n.stream), octet_length(n.event_type), octet_length(n.aggregate_type),
                              octet_length(n.aggregate_id), octet_length(n.ordering_key)) > 1000
                  or strpos(concat(n.stream, n.event_type, n.aggregate_type, n.aggregate_id, n.ordering_key), E'\x1f') > 0
                  or jsonb_typeof(n.headers) <> 'object' or n.headers ? 'amendedFrom'
                  or {schema}.outbox_may_be_archived(n.event_id, hour_ago)
             then {schema}.outbox_admits(n.event_id, n.id, n.stream, n.event_type, n.schema_version, n.aggregate_type,
                                         n.aggregate_id, n.ordering_key, n.headers, hour_ago)
             else true end
       and case when s.id is not null then s.engine = 'queue'
                when (select exists (select from {schema}.outbox_subscription a where a.state <> 'retired'))
                then {schema}.outbox_note_unmatched(n.event_id, n.stream, n.event_type)
                else false end;
  return null;
end
  $commitpost$;

create trigger outbox_fan_out after insert on {schema}.outbox_event
  referencing new table as published_now
  for each statement execute function {schema}.outbox_fan_out();

-- What publish sends for one event: the plan of the INSERT stays in the session, even of one behind a pooler, and a CALL is
-- parsed in a fraction of the time. It does what the INSERT does, with the rights of whoever calls it. "euro" is that sign
-- as the client sent it: where the three bytes of its UTF-8 are not one character, all text would be another.
create procedure {schema}.outbox_publish(
    euro text, event_id uuid, stream text, event_type text, schema_version integer, aggregate_type text,
    aggregate_id text, ordering_key text, sequence bigint, payload jsonb, headers jsonb, occurred_at timestamptz)
  language plpgsql
  as $commitpost$
begin
  if pg_catalog.length(euro) operator(pg_catalog.<>) 1 then
    raise exception 'this is not UTF-8' using errcode = '22P02';
  end if;
  insert into {schema}.outbox_event (event_id, stream, event_type, schema_version, aggregate_type, aggregate_id,
         ordering_key, sequence, payload, headers, occurred_at)
    values (event_id, stream, event_type, schema_version, aggregate_type, aggregate_id, ordering_key, sequence, payload,
            coalesce(headers, '{}'), coalesce(occurred_at, pg_catalog.clock_timestamp()));
end
  $commitpost$;

-- == numbering: lock the key first, then take the position ========================================

-- An amended event (0004) keeps the number and the position of the one whose place it takes.
create function {schema}.outbox_number() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  if new.headers ? 'amendedFrom' then
    perform 1 from {schema}.outbox_amendment a where a.event_id = new.event_id and a.xid = pg_current_xact_id();
    if found then
      return new;
    end if;
  end if;
  insert into {schema}.outbox_sequence as q (ordering_key, last)
    values (coalesce(new.ordering_key, new.aggregate_type || ':' || new.aggregate_id), 1)
    on conflict (ordering_key) do update set last = q.last + 1
    returning q.last into new.sequence;
  -- An event that is there already will not be inserted again (ON CONFLICT DO NOTHING): it must not use up a number.
  perform 1 from {schema}.outbox_event e where e.event_id = new.event_id;
  if found then
    update {schema}.outbox_sequence q set last = q.last - 1
     where q.ordering_key = coalesce(new.ordering_key, new.aggregate_type || ':' || new.aggregate_id);
    return new;
  end if;
  -- The position given by default was taken before the key was locked; another transaction may have passed since.
  new.id := nextval({schema:literal} || '.outbox_event_id_seq');
  return new;
end
  $commitpost$;

create trigger outbox_number before insert on {schema}.outbox_event
  for each row when (new.sequence is not null) execute function {schema}.outbox_number();

-- == immutability =================================================================================

create function {schema}.outbox_refuse_change() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  if tg_op = 'DELETE' and tg_table_name = 'outbox_event' and current_setting('commitpost.retaining', true) = 'on' then
    return null;
  end if;
  raise exception 'what was written is immutable: % on % is refused', tg_op, tg_table_name
    using errcode = '55000', hint = 'Publish a new event instead. Only retention (outbox_forget) removes events.';
end
  $commitpost$;

create trigger outbox_event_immutable before update or delete or truncate on {schema}.outbox_event
  for each statement execute function {schema}.outbox_refuse_change();

-- == the state machine ============================================================================

-- A delivery leaves DEAD only in the transaction in which somebody resolves its dead letter by name; one that was not
-- tried becomes DEAD only in that in which an operator moves its key aside (0005), or when its subscription is retired.
-- Facts in a table, not a setting: any session could switch a setting on.
create function {schema}.outbox_refuse_transition() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  if old.status = 'DEAD' and new.status in ('DEAD', 'PENDING') then
    perform 1 from {schema}.outbox_dead_letter l
      where l.event_id = old.event_id and l.subscription_id = old.subscription_id and l.position = old.id
        and l.resolved and l.resolved_xid = pg_current_xact_id();
    if found then
      return null;
    end if;
  end if;
  if old.status in ('PENDING', 'DEAD') and new.status = 'DEAD' and not new.held then
    perform 1 from {schema}.outbox_dead_letter l
      where l.event_id = old.event_id and l.subscription_id = old.subscription_id and l.position = old.id
        and l.moved_xid = pg_current_xact_id();
    if found then
      return null;
    end if;
  end if;
  if old.status = 'PENDING' and new.status = 'DEAD' then
    perform 1 from {schema}.outbox_subscription s where s.id = old.subscription_id and s.state = 'retired';
    if found then
      return null;
    end if;
  end if;
  if old.status = new.status then
    raise exception 'a delivery that is % is not changed', old.status
      using errcode = '55000',
            hint = 'A DEAD delivery is decided on with outbox_retry or outbox_resolve(dead letter id, operator, note).';
  end if;
  raise exception 'a delivery cannot go from % to %', old.status, new.status
    using errcode = '55000',
          hint = 'DONE is final. A DEAD delivery is re-driven with outbox_retry(dead letter id, operator, note).';
end
  $commitpost$;

-- The WHEN clause is all that an ordinary claim or settle pays, and for one event that is mostly to parse it: the server does
-- so for every statement. So it is short, and knows that there are four states. After, since before an update the row would
-- be locked for the trigger, and the lock be written to the log.
create trigger outbox_delivery_transition after update on {schema}.outbox_delivery
  for each row when (old.status <> 'PROCESSING' and (old.status <> 'PENDING' or new.status in ('DONE', 'DEAD')))
  execute function {schema}.outbox_refuse_transition();

-- A DEAD delivery has its dead letter when its transaction commits: what nobody is shown, nobody decides on. The letter
-- may be written after it, in the same statement or another. The WHEN clause is all that an ordinary settle pays.
create function {schema}.outbox_require_dead_letter() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  perform 1 from {schema}.outbox_dead_letter l
    where l.event_id = new.event_id and l.subscription_id = new.subscription_id and l.position = new.id
      and (not l.resolved or l.created_at >= now());
  if not found then
    raise exception 'a delivery cannot be DEAD without a dead letter: event %', new.event_id using errcode = '55000',
      hint = 'Insert it into outbox_dead_letter in the same transaction.';
  end if;
  return null;
end
  $commitpost$;

create constraint trigger outbox_delivery_letter after update of status on {schema}.outbox_delivery
  deferrable initially deferred
  for each row when (new.status = 'DEAD' and old.status <> 'DEAD')
  execute function {schema}.outbox_require_dead_letter();

create function {schema}.outbox_refuse_removal() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  if tg_op = 'DELETE' and {schema}.outbox_is_buried(old.status, old.subscription_id, old.event_id) then
    return old;
  end if;
  raise exception 'a delivery that is not DONE cannot be removed'
    using errcode = '55000', hint = 'Only DONE deliveries are removed, by retention.';
end
  $commitpost$;

create trigger outbox_delivery_removal before delete on {schema}.outbox_delivery
  for each row when (old.status <> 'DONE') execute function {schema}.outbox_refuse_removal();
create trigger outbox_delivery_truncation before truncate on {schema}.outbox_delivery
  for each statement execute function {schema}.outbox_refuse_removal();

create trigger outbox_operator_log_immutable before update or delete or truncate on {schema}.outbox_operator_log
  for each statement execute function {schema}.outbox_refuse_change();

-- == acts of an operator ==========================================================================

-- Refusals of the functions below carry the name of their reason as CONSTRAINT and what they are about as DETAIL, in JSON:
-- programs say them in the language of whoever asked.
create function {schema}.outbox_require_operator(operator text) returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  if operator is null or operator !~ '[^[:space:]]' then
    raise exception 'an operator''s name is needed' using errcode = '22023',
      hint = 'Say who does this: it is recorded with the act.';
  end if;
  if operator ~ '^[[:space:]]*policy:' then
    raise exception 'an operator is a person: "policy:" stands before the names of policies' using errcode = '22023';
  end if;
end
  $commitpost$;

create function {schema}.outbox_close_dead_letter(
    letter_id bigint, operator text, note text, action text)
  returns {schema}.outbox_dead_letter
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  letter {schema}.outbox_dead_letter;
  decided text;
begin
  select * into letter from {schema}.outbox_dead_letter d where d.id = letter_id for update;
  if not found then
    raise exception 'dead letter % does not exist', letter_id using errcode = 'P0002';
  end if;
  if letter.resolved then
    select case o.action when 'retry' then 'retried' else 'amended' end into decided from {schema}.outbox_operator_log o
     where o.action in ('retry', 'amend') and o.target ->> 'deadLetter' = letter_id::text limit 1;
    decided := coalesce(decided, 'resolved');
    raise exception 'dead letter % was already % by %', letter_id, decided, letter.resolved_by using errcode = '55000',
      constraint = 'letter-' || decided, detail = json_build_object('id', letter_id, 'by', letter.resolved_by);
  end if;
  update {schema}.outbox_dead_letter d
     set resolved = true, resolved_at = clock_timestamp(), resolved_by = operator, resolved_xid = pg_current_xact_id(),
         note = outbox_close_dead_letter.note, updated_at = clock_timestamp()
   where d.id = letter_id returning * into letter;
  insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
    values (operator, action, jsonb_build_object('deadLetter', letter_id, 'eventId', letter.event_id,
            'subscription', letter.subscription), 1, outbox_close_dead_letter.note);
  return letter;
end
  $commitpost$;

-- Re-drive: DEAD -> PENDING, attempts 0, now. The dead letter is resolved; dying again makes a new one. In whose name is
-- not looked at: policies do this too.
create function {schema}.outbox_deliver_again(letter_id bigint, operator text, note text) returns boolean
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  letter {schema}.outbox_dead_letter;
begin
  letter := {schema}.outbox_close_dead_letter(letter_id, operator, note, 'retry');
  perform 1 from {schema}.outbox_subscription s where s.id = letter.subscription_id and s.state = 'retired';
  if found then
    raise exception 'dead letter % is of subscription "%", which was retired', letter_id, letter.subscription
      using errcode = '55000', constraint = 'letter-of-retired',
            detail = json_build_object('id', letter_id, 'subscription', letter.subscription),
            hint = 'Nobody would deliver it. Publish the event again, or resolve by hand.';
  end if;
  update {schema}.outbox_delivery d
     set status = 'PENDING', held = true, suspect = false, attempt_count = 0, next_retry_at = clock_timestamp(),
         created_at = clock_timestamp(), updated_at = clock_timestamp()
   where d.subscription_id = letter.subscription_id and d.lane = letter.lane and d.id = letter.position
     and d.status = 'DEAD';
  if not found then
    raise exception 'dead letter % has no DEAD delivery to retry', letter_id using errcode = '55000',
      constraint = 'letter-without-delivery', detail = json_build_object('id', letter_id),
      hint = 'Its subscription never took it, or retention removed it. Publish the event again, or resolve by hand.';
  end if;
  return true;
end
  $commitpost$;

-- A re-drive by a person.
create function {schema}.outbox_retry(letter_id bigint, operator text, note text default null) returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  perform {schema}.outbox_require_operator(operator);
  return {schema}.outbox_deliver_again(letter_id, operator, note);
end
  $commitpost$;

-- Settled by hand: the delivery stays DEAD, and what waits behind it on its key goes on. Only the first are let go here:
-- each that ends lets more go, and if one of them fails, not all have to be parked again.
create function {schema}.outbox_resolve(letter_id bigint, operator text, note text default null) returns boolean
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  letter {schema}.outbox_dead_letter;
begin
  perform {schema}.outbox_require_operator(operator);
  letter := {schema}.outbox_close_dead_letter(letter_id, operator, note, 'resolve');
  update {schema}.outbox_delivery d set held = false, held_since = null, updated_at = clock_timestamp()
   where d.subscription_id = letter.subscription_id and d.lane = letter.lane and d.id = letter.position
     and d.status = 'DEAD' and d.held;
  update {schema}.outbox_delivery d set next_retry_at = now(), updated_at = clock_timestamp()
   where d.subscription_id = letter.subscription_id and d.id = any (array(
     select p.id from {schema}.outbox_delivery p
      where p.subscription_id = letter.subscription_id and p.lane = letter.lane
        and p.ordering_key = letter.ordering_key and p.held and p.status = 'PENDING' and p.next_retry_at = 'infinity'
      order by p.id
      limit 100
        for update));
  return true;
end
  $commitpost$;

-- == who may call what ============================================================================

-- Functions are open to everybody unless that is taken back. These run with their owner's rights: whoever may execute
-- a trigger function may hang it on a table of his own and feed it rows he made up.
revoke all on function
  {schema}.outbox_flaw(text, text, integer, text, text, text, jsonb),
  {schema}.outbox_admits(uuid, bigint, text, text, integer, text, text, text, jsonb, uuid),
  {schema}.outbox_note_unmatched(uuid, text, text),
  {schema}.outbox_fan_out(), {schema}.outbox_number(), {schema}.outbox_refuse_change(),
  {schema}.outbox_refuse_transition(), {schema}.outbox_refuse_removal(), {schema}.outbox_require_dead_letter(),
  {schema}.outbox_close_dead_letter(bigint, text, text, text), {schema}.outbox_retry(bigint, text, text),
  {schema}.outbox_resolve(bigint, text, text), {schema}.outbox_require_operator(text),
  {schema}.outbox_deliver_again(bigint, text, text)
  from public;
