-- Exports to cold storage: which events of a stream were written where, and whether that was verified since.

create table {schema}.outbox_export (
  id              bigint      generated always as identity primary key,
  stream          text        not null,
  first_position  bigint      not null,
  last_position   bigint      not null,
  events          bigint      not null,
  location        text        not null,
  manifest_sha256 text        not null,
  created_at      timestamptz not null default clock_timestamp(),
  verified_at     timestamptz
);
create index outbox_export_stream on {schema}.outbox_export (stream, last_position) where verified_at is not null;
