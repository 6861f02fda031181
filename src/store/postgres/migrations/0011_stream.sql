-- What the log stream reads. Its progress is in outbox_stream, of 0001.

-- The name of the publication: of this schema, since a database may have several.
create function {schema}.outbox_publication() returns text
  language sql immutable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select 'commitpost_' || substr(md5({schema:literal}), 1, 12)
  $commitpost$;

-- The publication as it is, by its rows in the catalogue: whatever changes it changes this, also if it is put back as it
-- was. Null where it is missing or keeps inserted events out of the log, which the server does without an error.
create function {schema}.outbox_published_as() returns text
  language sql stable set search_path = pg_catalog, pg_temp
  as $commitpost$
    select concat_ws('.', p.oid, p.xmin, r.oid, r.xmin)
      from pg_publication p
      join pg_publication_rel r on r.prpubid = p.oid and r.prrelid = to_regclass({schema:literal} || '.outbox_event')
     where p.pubname = {schema}.outbox_publication() and p.pubinsert and p.pubviaroot
       -- A filter of rows or a choice of columns, from PostgreSQL 15 on.
       and to_jsonb(r) ->> 'prqual' is null and to_jsonb(r) ->> 'prattrs' is null
  $commitpost$;

-- By its number and not by its name: whoever makes another table of it says so, and has it locked, so that no event is
-- missing from the log between: to those who read it, it is the same publication.
create function {schema}.outbox_put_in_publication() returns void
  language plpgsql set search_path = pg_catalog, pg_temp
  as $commitpost$
declare
  before text[] := array(select concat_ws('.', p.oid, p.xmin, r.oid, r.xmin)
                           from pg_publication p join pg_publication_rel r on r.prpubid = p.oid
                          where p.pubname = {schema}.outbox_publication());
  after text;
begin
  perform 1 from pg_publication p where p.pubname = {schema}.outbox_publication();
  if not found then
    return;
  end if;
  execute format('alter publication %I set table %s.outbox_event', {schema}.outbox_publication(), {schema:literal});
  after := {schema}.outbox_published_as();
  update {schema}.outbox_stream t set publication = after where t.publication = any (before);
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
revoke all on function
  {schema}.outbox_publication(), {schema}.outbox_published_as(), {schema}.outbox_put_in_publication() from public;
