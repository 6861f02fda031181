-- Alerts: what has been told of, which alarms are on, and whose turn it is to look.

-- What is there when this is applied counts as told. The default is dropped again: a new dead letter is to be told of.
alter table {schema}.outbox_dead_letter add column told_at timestamptz default now();
alter table {schema}.outbox_dead_letter alter column told_at drop default;
create index outbox_dead_letter_untold on {schema}.outbox_dead_letter (id) where told_at is null and not resolved;

-- One row per condition that holds, or was told of a short while ago.
create table {schema}.outbox_alarm (
  key     text        primary key,
  rule    text        not null,
  -- Since when it holds; null once it does not.
  since   timestamptz,
  -- Whether anybody was told that it holds: only then somebody is told that it is over.
  told    boolean     not null,
  -- When somebody was last told that it holds: not again before the cool-down is over.
  told_at timestamptz
);

-- One row. Whoever has the turn looks and tells; the epoch keeps one whose turn lapsed from writing what it told.
create table {schema}.outbox_monitor (
  single        boolean     primary key default true check (single),
  holder        text,
  until         timestamptz not null default '-infinity',
  epoch         bigint      not null default 0,
  -- When anything was last looked at, everything, and when a report was last made.
  looked_at     timestamptz not null default '-infinity',
  round_at      timestamptz not null default '-infinity',
  report_at     timestamptz not null default clock_timestamp(),
  -- Where events had come to at that time, to tell how many a second are published.
  rate_position bigint,
  rate_at       timestamptz
);
insert into {schema}.outbox_monitor default values;
