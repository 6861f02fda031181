-- Cold exports: which positions of a stream were written to files, chained by hash like the operator log.

-- == what was exported ============================================================================

-- One row for each export. It covers every event of the stream from first_position to last_position: when it is written,
-- every transaction that may have had a position up to the last one has ended (see export-range.ts).
create table {schema}.outbox_export (
  id              bigint      generated always as identity primary key,
  stream          text        not null,
  first_position  bigint      not null,
  last_position   bigint      not null,
  -- All that are in the files, also those that took the place of an event of an earlier export.
  events          bigint      not null check (events >= 0),
  location        text        not null,
  manifest_sha256 text        not null check (manifest_sha256 ~ '^[0-9a-f]{64}$'),
  -- Whether what the catalogue calls sensitive was masked.
  masked          boolean     not null,
  exported_by     text        not null,
  created_at      timestamptz not null default clock_timestamp(),
  -- When somebody last read all of the files again and found them whole; null until then.
  verified_at     timestamptz,
  entry           bigint      not null,
  previous_hash   text        not null,
  hash            text        not null,
  check (first_position <= last_position)
);
create unique index outbox_export_range on {schema}.outbox_export (stream, last_position);
create unique index outbox_export_entry on {schema}.outbox_export (entry);
create index outbox_export_manifest on {schema}.outbox_export (manifest_sha256);

-- An event that takes the place of another has its position, which an export may have passed already: the next export
-- of the stream has it. Null until one has.
alter table {schema}.outbox_amendment add column export_id bigint;
create index outbox_amendment_unexported on {schema}.outbox_amendment (event_id) where export_id is null;

-- == the chain ====================================================================================

create table {schema}.outbox_export_head (
  only_one boolean primary key default true check (only_one),
  entries  bigint  not null,
  hash     text    not null
);
insert into {schema}.outbox_export_head (entries, hash) values (0, repeat('0', 64));

-- As outbox_operator_hash. When it was verified is left out, because that comes later: the operator log says who did.
create function {schema}.outbox_export_hash(exported {schema}.outbox_export) returns text
  language sql stable set search_path = pg_catalog, pg_temp set timezone = 'UTC'
  as $commitpost$ select {schema}.outbox_hash(to_jsonb(exported) - 'hash' - 'verified_at') $commitpost$;

create function {schema}.outbox_chain_export() returns trigger
  language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  head {schema}.outbox_export_head;
begin
  select * into strict head from {schema}.outbox_export_head for update;
  new.entry := head.entries + 1;
  new.previous_hash := head.hash;
  new.verified_at := null;
  new.hash := {schema}.outbox_export_hash(new);
  update {schema}.outbox_export_head set entries = new.entry, hash = new.hash;
  return new;
end
  $commitpost$;

create trigger outbox_export_chain before insert on {schema}.outbox_export
  for each row execute function {schema}.outbox_chain_export();

create function {schema}.outbox_refuse_export_change() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  if tg_op = 'UPDATE' then
    if new.verified_at is not null and to_jsonb(new) - 'verified_at' = to_jsonb(old) - 'verified_at' then
      return new;
    end if;
  end if;
  raise exception 'the record of an export cannot be changed'
    using errcode = '55000', hint = 'It only takes when the export was verified, by outbox_verify_export.';
end
  $commitpost$;

create trigger outbox_export_immutable before update or delete on {schema}.outbox_export
  for each row execute function {schema}.outbox_refuse_export_change();
create trigger outbox_export_truncation before truncate on {schema}.outbox_export
  for each statement execute function {schema}.outbox_refuse_export_change();

-- == acts of an operator ==========================================================================

-- Whoever records an export has seen every transaction end that may have a position up to last_pos, and has the files on
-- disk. Refused where another export of the stream came first: nothing is ever exported twice, or left out between two.
create function {schema}.outbox_record_export(
    stream_name text, first_pos bigint, last_pos bigint, events_written bigint, directory text, manifest_hash text,
    is_masked boolean, amended uuid[], operator text, note text default null)
  returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  recorded bigint;
  expected bigint;
begin
  perform {schema}.outbox_require_operator(operator);
  -- Exports of any stream one after the other, as their chain will be.
  perform 1 from {schema}.outbox_export_head for update;
  select coalesce(max(x.last_position), 0) + 1 into expected from {schema}.outbox_export x where x.stream = stream_name;
  if first_pos <> expected then
    raise exception 'the next export of stream "%" begins at position %, not at %', stream_name, expected, first_pos
      using errcode = '55000', constraint = 'exported-meanwhile',
            detail = json_build_object('stream', stream_name, 'expected', expected, 'first', first_pos),
            hint = 'Somebody else has exported it meanwhile. Start again: it goes on from there.';
  end if;
  insert into {schema}.outbox_export (stream, first_position, last_position, events, location, manifest_sha256, masked,
                                      exported_by)
    values (stream_name, first_pos, last_pos, events_written, directory, manifest_hash, is_masked, operator)
    returning id into recorded;
  update {schema}.outbox_amendment a set export_id = recorded
   where a.event_id = any (amended) and a.export_id is null;
  insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
    values (operator, 'export', jsonb_build_object('export', recorded, 'stream', stream_name, 'firstPosition', first_pos,
            'lastPosition', last_pos, 'manifestSha256', manifest_hash, 'masked', is_masked),
            least(events_written, 2147483647), outbox_record_export.note);
  return recorded;
end
  $commitpost$;

-- Whoever verifies has read all of the files again and found them whole.
create function {schema}.outbox_verify_export(
    exported bigint, manifest_hash text, operator text, note text default null)
  returns timestamptz language plpgsql security definer set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  found_export {schema}.outbox_export;
begin
  perform {schema}.outbox_require_operator(operator);
  update {schema}.outbox_export x set verified_at = clock_timestamp()
   where x.id = exported and x.manifest_sha256 = manifest_hash returning * into found_export;
  if not found then
    raise exception 'there is no export % with this manifest', exported using errcode = 'P0002';
  end if;
  insert into {schema}.outbox_operator_log (operator, action, target, affected, note)
    values (operator, 'export-verify', jsonb_build_object('export', exported, 'stream', found_export.stream,
            'manifestSha256', manifest_hash), least(found_export.events, 2147483647), outbox_verify_export.note);
  return found_export.verified_at;
end
  $commitpost$;

-- For retention: whether a verified export has this event. One that took the place of another is asked for by itself.
create function {schema}.outbox_is_exported(stream_name text, at_position bigint, event uuid) returns boolean
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select exists (select 1 from {schema}.outbox_export x
                    where x.stream = stream_name and x.last_position >= at_position and x.first_position <= at_position
                      and x.verified_at is not null)
       and not exists (select 1 from {schema}.outbox_amendment a
                         left join {schema}.outbox_export x on x.id = a.export_id
                        where a.event_id = event and x.verified_at is null)
  $commitpost$;

-- == who may call what ============================================================================

-- As in 0002: functions are open to everybody unless that is taken back.
revoke all on function
  {schema}.outbox_export_hash({schema}.outbox_export), {schema}.outbox_chain_export(),
  {schema}.outbox_refuse_export_change(),
  {schema}.outbox_record_export(text, bigint, bigint, bigint, text, text, boolean, uuid[], text, text),
  {schema}.outbox_verify_export(bigint, text, text, text), {schema}.outbox_is_exported(text, bigint, uuid)
  from public;
