-- The core tables. {schema} is replaced by the quoted schema name; nothing else is interpolated.

-- Events and what handlers say of them may be in any language: in another encoding a text that has no equivalent there
-- could be neither published nor written down. (These files are ASCII, so that this is what is said, and not less.)
do $commitpost$
begin
  if current_setting('server_encoding') <> 'UTF8' then
    raise exception 'commitpost needs a database in encoding UTF8, and this one is in %',
      current_setting('server_encoding')
      using errcode = '0A000', hint = 'Make one: create database ... encoding ''UTF8'' template template0.';
  end if;
end
$commitpost$;

-- == what travels =================================================================================

create function {schema}.outbox_uuid_v7() returns uuid
  language sql volatile parallel safe
  as $commitpost$
    select encode(set_bit(set_bit(
      overlay(uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
      52, 1), 53, 1), 'hex')::uuid
  $commitpost$;

-- Append only. What its columns may hold is said by outbox_flaw, and not by CHECK constraints: their texts would be parsed
-- again for every statement, which costs as much as the rest of publishing one event.
-- The writing transaction's id stands before the position because defaults are evaluated in this
-- order: whoever has a position already has a transaction id, which is what makes the low-water bound safe.
create table {schema}.outbox_event (
  event_id       uuid        not null default {schema}.outbox_uuid_v7() primary key,
  xid            xid8        not null default pg_current_xact_id(),
  id             bigint      generated always as identity (sequence name {schema}.outbox_event_id_seq),
  stream         text        not null,
  event_type     text        not null,
  schema_version integer     not null default 1,
  aggregate_type text        not null,
  aggregate_id   text        not null,
  ordering_key   text,
  sequence       bigint,
  payload        jsonb       not null,
  headers        jsonb       not null default '{}',
  occurred_at    timestamptz not null default clock_timestamp(),
  created_at     timestamptz not null default clock_timestamp()
);
-- Registration reads the events of transactions that had not ended when it began.
create index outbox_event_xid on {schema}.outbox_event (xid);

-- One row per ordering key that numbers its events. Locking it makes position order equal commit order.
create table {schema}.outbox_sequence (
  ordering_key text   primary key,
  last         bigint not null
);

-- == who listens ==================================================================================

create table {schema}.outbox_subscription (
  id              integer     generated always as identity primary key,
  name            text        not null check (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
  streams         text[],
  stream_like     text[],
  event_types     text[],
  order_by        text        not null check (order_by in ('none', 'aggregate', 'total')),
  lanes           smallint    not null check (lanes between 0 and 64),
  on_dead         text        not null check (on_dead in ('block', 'continue')),
  -- Whether each event gets a delivery, or the server's log is read: see outbox_stream.
  engine          text        not null default 'queue' check (engine in ('queue', 'stream')),
  max_attempts    integer     not null check (max_attempts > 0),
  start_from      text        not null check (start_from in ('now', 'beginning', 'time')),
  start_at        timestamptz,
  state           text        not null check (state in ('joining', 'active', 'retired')),
  -- Grows whenever deliveries may appear below positions already passed: a low-water bound is good for one generation.
  generation      integer     not null default 1,
  -- The events of transactions that had ended by it are there, or are not wanted; those of the others are to be swept.
  -- Null, and not served, from when an ordered one that was active is widened until this is taken.
  joined_snapshot pg_snapshot,
  barrier         xid8,
  swept_to        uuid,
  -- While an ordered one is being widened: it is served with what had ended by its snapshot, none of it beyond this.
  served_to       bigint,
  paused_at       timestamptz,
  paused_by       text,
  retired_at      timestamptz,
  retired_by      text,
  -- When the last event that was being published while it was retired had been set aside.
  closed_at       timestamptz,
  created_at      timestamptz not null default clock_timestamp(),
  updated_at      timestamptz not null default clock_timestamp(),
  check ((lanes = 0) = (order_by = 'none')),
  check ((start_from = 'time') = (start_at is not null)),
  check ((streams is null) = (stream_like is null)),
  check ((paused_at is null) = (paused_by is null)),
  check ((retired_at is null) = (retired_by is null)),
  check ((retired_at is null) = (state <> 'retired')),
  check (joined_snapshot is not null or state = 'retired' or (state = 'joining' and served_to is null))
);
-- A name that was retired may be given again: to a new subscription with a progress of its own.
create unique index outbox_subscription_name on {schema}.outbox_subscription (name) where state <> 'retired';

-- How far each subscription is that reads the log. Only what fails there has a delivery.
create table {schema}.outbox_stream (
  subscription_id integer     primary key,
  -- Its replication slot. Names are of the whole server: this one is of this database and schema.
  slot            text        not null,
  -- Every event of a transaction that had ended by it was handled, or has a delivery: what the log has lost is found in
  -- the table by this. It is older than what was confirmed to the server, never newer.
  snapshot        pg_snapshot not null,
  -- The first time: what was written earlier is not wanted.
  start_at        timestamptz,
  -- While events are delivered from the table: which, and to what position that is done.
  pass_snapshot   pg_snapshot,
  pass_to         bigint,
  -- Nothing beyond this place was ever confirmed. Null while there is no slot that can be relied on.
  lsn             pg_lsn,
  -- The server and its timeline that this place is of. Null before the first time.
  server          text,
  -- What made the events of that log appear in it, as outbox_published_as() names it. Another is another log.
  publication     text,
  -- Why and when the log was last found to have lost something. While there is none, the reason why.
  gap             text,
  gap_at          timestamptz,
  -- No event beyond this position has a delivery that was made for want of another way.
  parked_to       bigint      not null default 0,
  -- How many readers in a row vanished before they came further than where they began.
  crashes         integer     not null default 0,
  -- Grows when the subscription takes more: whoever reads for less may not say how far he is.
  generation      integer     not null default 1,
  owner           text,
  until           timestamptz not null default '-infinity',
  epoch           bigint      not null default 0,
  created_at      timestamptz not null default clock_timestamp(),
  updated_at      timestamptz not null default clock_timestamp(),
  check (pass_to is null or pass_snapshot is not null),
  check (lsn is null or server is not null),
  check ((gap is null) = (gap_at is null))
) with (fillfactor = 50);

-- The id of the transaction that last changed a subscription. A sequence because it must not roll back and must be
-- readable by a transaction whose snapshot is older: see outbox_fan_out.
create sequence {schema}.outbox_registry_xid minvalue 0 start 0;

create function {schema}.outbox_matches(stream_like text[], event_types text[], stream text, event_type text)
  returns boolean language sql immutable parallel safe
  as $commitpost$
    select (stream_like is null or stream like any (stream_like))
       and (event_types is null or event_type = any (event_types))
  $commitpost$;

-- md5, not hashtext: a key must keep its lane across server versions and in other databases.
create function {schema}.outbox_lane_of(ordering_key text, lanes smallint)
  returns smallint language sql immutable parallel safe
  as $commitpost$
    select case when lanes <= 1 then 0::smallint
           else (('x' || substr(md5(ordering_key), 1, 8))::bit(32)::bigint % lanes)::smallint end
  $commitpost$;

create function {schema}.outbox_key_of(order_by text, ordering_key text, aggregate_type text, aggregate_id text)
  returns text language sql immutable parallel safe
  as $commitpost$
    select case order_by when 'none' then null when 'total' then ''
           else coalesce(ordering_key, aggregate_type || ':' || aggregate_id) end
  $commitpost$;

-- == one event on its way to one subscription =====================================================

create sequence {schema}.outbox_lease_token;

create table {schema}.outbox_delivery (
  subscription_id    integer     not null,
  lane               smallint    not null,
  id                 bigint      not null,
  event_id           uuid        not null,
  ordering_key       text,
  status             text        not null default 'PENDING',
  held               boolean     not null default false,
  -- The transaction that held it to be claimed again. By it claims leave out the dead entries of earlier ones, which a
  -- snapshot that somebody holds open keeps.
  held_since         bigint,
  suspect            boolean     not null default false,
  attempt_count      integer     not null default 0,
  max_attempts       integer     not null,
  next_retry_at      timestamptz,
  last_attempt_at    timestamptz,
  locked_by          text,
  locked_until       timestamptz,
  lease_token        bigint,
  last_error_code    text,
  last_error_message text,
  attempt_history    jsonb,
  -- When it began to wait: it was made, or sent on its way again after it was DEAD.
  created_at         timestamptz not null default clock_timestamp(),
  updated_at         timestamptz not null default clock_timestamp(),
  processed_at       timestamptz,
  -- PENDING and not held. What an index asks for is a column of its own: a change of a column that stands in any index is a
  -- change of all of them. This one changes when a delivery is claimed, and neither the status nor the lease is in an index,
  -- so that settling it changes none. Not a generated column: with one the server makes every row that it writes twice.
  fresh              boolean     not null default true,
  -- The position first: an index that began like the partial ones below would stand in for them wherever the planner
  -- knows too little, and with it one look at what waits before an event reads a whole lane.
  primary key (id, subscription_id) with (fillfactor = 45),
  -- All that a row may be, as one text: its status, how much of a lease it has, fresh, held, suspect, and whether it has neither
  -- a time to retry, nor one when it was done, nor an error, nor since when it is held. What stands after the status has a
  -- fixed length, so that each line is of one status. The server reads the texts of CHECK constraints anew for every
  -- statement, word by word and byte by byte: rule by rule they would be twice as long. What comes most often stands first.
  constraint outbox_delivery_state check (
    concat(status, num_nonnulls(lease_token, locked_by, locked_until), fresh, held, suspect, next_retry_at is null,
           processed_at is null, last_error_code is null, held_since is null)
      like any ('{PROCESSING3ff_tt_t,DONE0ffftf_t,PENDING0tfftt_t,PENDING0ft_ft__,DEAD0fffttft,DEAD0ftfttf_}')
    and attempt_count >= 0 and max_attempts > 0)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);
-- A key looks rare, whatever a sample says: where one blocked key fills the table, the planner would read all of it to
-- find out that another key has nothing waiting.
alter table {schema}.outbox_delivery alter column ordering_key set (n_distinct = -0.5);

-- Fresh rows and held ones (retries, returned, suspect, blocking) have an index each, so that a hundred thousand
-- waiting retries do not stand in the way of new work. An expression, so that the primary key is no substitute: the
-- planner would take it for as good, and read every delivery that is done.
create index outbox_delivery_fresh on {schema}.outbox_delivery (subscription_id, lane, (id + 0)) where fresh;
create index outbox_delivery_due on {schema}.outbox_delivery (subscription_id, lane, next_retry_at, id)
  where held and not suspect and next_retry_at is not null;
create index outbox_delivery_suspect on {schema}.outbox_delivery (subscription_id, id, lane) where held and suspect;
create index outbox_delivery_held_key on {schema}.outbox_delivery
  (subscription_id, lane, ordering_key, id, (coalesce(held_since, 9223372036854775807)))
  where held and ordering_key is not null;
-- Whether anything of a lane is held. It begins with an expression, so that it stands in for no other.
create index outbox_delivery_held on {schema}.outbox_delivery
  ((subscription_id + 0), lane, (coalesce(held_since, 9223372036854775807)))
  where held and ordering_key is not null;

-- What is in hand: one row for each claim, so that the deliveries of a worker that vanished are found without an index of
-- them. It goes with the last of its deliveries. No delivery of it lapses before "until", so nobody looks earlier.
create table {schema}.outbox_lease (
  subscription_id integer     not null,
  token           bigint      not null,
  worker_id       text        not null,
  until           timestamptz not null,
  lanes           smallint[]  not null,
  positions       bigint[]    not null,
  primary key (subscription_id, token)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
-- Not compressed: a lease lives for milliseconds, and to compress the positions of a claim takes as long as to lock its rows.
alter table {schema}.outbox_lease alter column positions set storage external;

-- The deliveries that are PROCESSING. Each is looked up by its primary key, whatever the planner believes.
create view {schema}.outbox_in_hand as
  select l.subscription_id, l.token, l.until, l.lanes, d.*
    from {schema}.outbox_lease l
   cross join lateral unnest(l.positions) as p(id)
   cross join lateral (
     select d.lane, d.id, d.event_id, d.ordering_key, d.status, d.suspect, d.locked_by, d.locked_until, d.created_at,
            d.xmin as version
       from {schema}.outbox_delivery d
      where d.id = p.id and d.subscription_id = l.subscription_id and d.lease_token = l.token
     offset 0) d;

create table {schema}.outbox_lane (
  subscription_id integer     not null,
  lane            smallint    not null,
  owner           text,
  until           timestamptz not null default '-infinity',
  epoch           bigint      not null default 0,
  primary key (subscription_id, lane)
) with (fillfactor = 50);

create table {schema}.outbox_worker (
  worker_id        text        primary key,
  subscription_ids integer[]   not null,
  host             text        not null,
  pid              integer     not null,
  started_at       timestamptz not null default clock_timestamp(),
  seen_at          timestamptz not null default clock_timestamp(),
  until            timestamptz not null
) with (fillfactor = 50);

-- == set aside, and by whom =======================================================================

-- A copy, not a reference: a dead letter outlives the retention of its event.
create table {schema}.outbox_dead_letter (
  id              bigint      generated always as identity primary key,
  subscription    text        not null,
  subscription_id integer,
  lane            smallint,
  position        bigint      not null,
  event_id        uuid        not null,
  stream          text        not null,
  event_type      text        not null,
  schema_version  integer     not null,
  aggregate_type  text        not null,
  aggregate_id    text        not null,
  ordering_key    text,
  payload         jsonb       not null,
  headers         jsonb       not null,
  occurred_at     timestamptz not null,
  error_code      text        not null,
  error_message   text        not null,
  attempt_history jsonb       not null default '[]',
  retry_count     integer     not null,
  failed_at       timestamptz not null default clock_timestamp(),
  resolved        boolean     not null default false,
  resolved_at     timestamptz,
  resolved_by     text,
  -- The transaction that resolved it: in it, and in no other, the delivery may leave DEAD.
  resolved_xid    xid8,
  note            text,
  created_at      timestamptz not null default clock_timestamp(),
  updated_at      timestamptz not null default clock_timestamp(),
  constraint outbox_dead_letter_resolved check (
    resolved = (resolved_at is not null) and resolved = (resolved_by is not null))
);
create index outbox_dead_letter_open on {schema}.outbox_dead_letter (id) where not resolved;
create index outbox_dead_letter_resolved on {schema}.outbox_dead_letter (resolved, id);
create index outbox_dead_letter_type on {schema}.outbox_dead_letter (event_type, id);
create index outbox_dead_letter_failed_at on {schema}.outbox_dead_letter (failed_at);
create index outbox_dead_letter_event on {schema}.outbox_dead_letter (event_id);

create table {schema}.outbox_operator_log (
  id       bigint      generated always as identity primary key,
  at       timestamptz not null default clock_timestamp(),
  operator text        not null check (operator ~ '[^[:space:]]'),
  action   text        not null,
  target   jsonb       not null,
  affected integer     not null,
  note     text
);

-- Events that no subscription took when they were published. Reported by the workers.
create table {schema}.outbox_unmatched (
  event_id    uuid        primary key,
  stream      text        not null,
  event_type  text        not null,
  created_at  timestamptz not null default clock_timestamp(),
  reported_at timestamptz
);
create index outbox_unmatched_open on {schema}.outbox_unmatched (created_at) where reported_at is null;

create table {schema}.outbox_inbox (
  subscription text        not null,
  event_id     uuid        not null,
  processed_at timestamptz not null default clock_timestamp(),
  primary key (subscription, event_id)
);
