-- What the log stream reads. Its progress is in outbox_stream, of 0001.

-- The name of the publication: of this schema, since a database may have several.
create function {schema}.outbox_publication() returns text
  language sql immutable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select 'commitpost_' || substr(md5({schema:literal}), 1, 12)
  $commitpost$;

-- By its number and not by its name: whoever makes another table of it says so.
create function {schema}.outbox_put_in_publication() returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
begin
  perform 1 from pg_publication p where p.pubname = {schema}.outbox_publication();
  if found then
    execute format('alter publication %I set table %s.outbox_event', {schema}.outbox_publication(), {schema:literal});
  end if;
end
  $commitpost$;

-- Only what is inserted, and under the table's own name where it is partitioned. Whoever may not make it here is told how
-- when a subscription asks for the stream; all others need it not.
do $commitpost$
begin
  set local client_min_messages = error;
  begin
    execute format('create publication %I with (publish = ''insert'', publish_via_partition_root = true)',
      {schema}.outbox_publication());
  exception when duplicate_object then
    null; -- of a schema of this name that was dropped
  end;
  perform {schema}.outbox_put_in_publication();
exception when insufficient_privilege then
  null;
end
$commitpost$;

-- As in 0002: functions are open to everybody unless that is taken back.
revoke all on function {schema}.outbox_publication(), {schema}.outbox_put_in_publication() from public;
