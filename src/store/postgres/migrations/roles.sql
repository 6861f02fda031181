-- Commitpost: group roles with the least rights that each job needs.
-- Run it as the owner of the tables, in one transaction, after every migration; it may be run any number of times.
-- Then give them to logins: grant <prefix>_publisher to my_app. A worker whose handlers publish needs both roles.
-- Only Commitpost's own objects are named, because the schema may hold others.

do $commitpost$
declare
  wanted text;
begin
  foreach wanted in array array[{publisher:literal}, {worker:literal}, {operator:literal}, {viewer:literal}] loop
    if pg_catalog.to_regrole(wanted) is null then
      begin
        execute 'create role ' || wanted || ' nologin';
      exception when duplicate_object or unique_violation then
        null; -- made by somebody else at this moment
      end;
    end if;
  end loop;
end
$commitpost$;

-- What an earlier version granted and this one does not is taken back. A table's REVOKE includes its columns.
revoke all on
  {schema}.outbox_event, {schema}.outbox_sequence, {schema}.outbox_subscription, {schema}.outbox_delivery,
  {schema}.outbox_lane, {schema}.outbox_worker, {schema}.outbox_dead_letter, {schema}.outbox_operator_log,
  {schema}.outbox_unmatched, {schema}.outbox_inbox, {schema}.outbox_amendment, {schema}.outbox_redrive_plan,
  {schema}.outbox_redrive_item, {schema}.outbox_migration, {schema}.outbox_alarm, {schema}.outbox_monitor,
  {schema}.outbox_scope, {schema}.outbox_operator_log_head, {schema}.outbox_stand_in, {schema}.outbox_lease,
  {schema}.outbox_in_hand, {schema}.outbox_export, {schema}.outbox_export_head, {schema}.outbox_archive,
  {schema}.outbox_archived, {schema}.outbox_retention_run, {schema}.outbox_retention_policy,
  {schema}.outbox_partitioning, {schema}.outbox_period, {schema}.outbox_period_survey, {schema}.outbox_stream
  from public, {publisher}, {worker}, {operator}, {viewer};
revoke all on sequence
  {schema}.outbox_event_id_seq, {schema}.outbox_registry_xid, {schema}.outbox_lease_token
  from public, {publisher}, {worker}, {operator}, {viewer};
revoke all on function
  {schema}.outbox_uuid_v7(), {schema}.outbox_matches(text[], text[], text, text),
  {schema}.outbox_lane_of(text, smallint), {schema}.outbox_key_of(text, text, text, text),
  {schema}.outbox_flaw(text, text, integer, text, text, text, jsonb),
  {schema}.outbox_admits(uuid, bigint, text, text, integer, text, text, text, jsonb, uuid),
  {schema}.outbox_note_unmatched(uuid, text, text),
  {schema}.outbox_fan_out(), {schema}.outbox_number(), {schema}.outbox_refuse_change(),
  {schema}.outbox_refuse_transition(), {schema}.outbox_refuse_removal(), {schema}.outbox_require_dead_letter(),
  {schema}.outbox_forget(uuid[]), {schema}.outbox_require_read_committed(),
  {schema}.outbox_close_dead_letter(bigint, text, text, text), {schema}.outbox_retry(bigint, text, text),
  {schema}.outbox_resolve(bigint, text, text), {schema}.outbox_set_paused(text, boolean, text, text),
  {schema}.outbox_retire(text, text, text, boolean, boolean),
  {schema}.outbox_close_retired(), {schema}.outbox_discard({schema}.outbox_subscription, text),
  {schema}.outbox_open_deliveries(integer), {schema}.outbox_is_buried(text, integer, uuid),
  {schema}.outbox_lock_registry(), {schema}.outbox_refuse_subscription_removal(),
  {schema}.outbox_require_operator(text), {schema}.outbox_deliver_again(bigint, text, text),
  {schema}.outbox_error_pattern(text), {schema}.outbox_fingerprint(text, text),
  {schema}.outbox_dead_reason(text, bigint, integer), {schema}.outbox_describe_letter(),
  {schema}.outbox_refuse_letter_removal(), {schema}.outbox_purge(interval, text, text, text, integer),
  {schema}.outbox_amend(bigint, jsonb, text, text, integer, uuid),
  {schema}.outbox_is_behind_dead(integer, smallint, text, bigint),
  {schema}.outbox_move_waiting({schema}.outbox_subscription, smallint, text, integer),
  {schema}.outbox_move_aside(text, text, text, text, integer),
  {schema}.outbox_mark_reordered(bigint), {schema}.outbox_require_open_letters(bigint[]),
  {schema}.outbox_plan_redrive(jsonb),
  {schema}.outbox_begin_redrive(bigint, text, double precision, integer, double precision, integer, boolean),
  {schema}.outbox_next_redrive(bigint, integer, text, boolean), {schema}.outbox_judge_redrive(bigint),
  {schema}.outbox_redrive_fate({schema}.outbox_redrive_item), {schema}.outbox_drive_next(bigint, text, text, integer),
  {schema}.outbox_step_redrive(bigint, text, text), {schema}.outbox_cancel_redrive(bigint, text, text),
  {schema}.outbox_redrive_by_policy(integer, text, text[], text[], double precision, double precision, integer),
  {schema}.outbox_lock_registry(), {schema}.outbox_require_operator(text), {schema}.outbox_keep_scope(),
  {schema}.outbox_chain(), {schema}.outbox_hash(jsonb), {schema}.outbox_operator_hash({schema}.outbox_operator_log),
  {schema}.outbox_export_hash({schema}.outbox_export), {schema}.outbox_chain_export(),
  {schema}.outbox_refuse_export_change(),
  {schema}.outbox_record_export(text, bigint, bigint, bigint, text, text, boolean, uuid[], text, text),
  {schema}.outbox_verify_export(bigint, text, text, text), {schema}.outbox_is_exported(text, bigint, uuid),
  {schema}.outbox_may_be_archived(uuid, uuid),
  {schema}.outbox_refuse_archived(uuid, bigint), {schema}.outbox_mask_at(jsonb, text[]), {schema}.outbox_mask(jsonb, jsonb),
  {schema}.outbox_try_lock_registry(), {schema}.outbox_removable(uuid[], timestamptz), {schema}.outbox_remove(uuid[]),
  {schema}.outbox_keep_copy({schema}.outbox_retention_run, uuid[]),
  {schema}.outbox_next_retained({schema}.outbox_retention_run, integer), {schema}.outbox_id_at(timestamptz),
  {schema}.outbox_after_new(uuid, timestamptz), {schema}.outbox_after_cleared(bigint),
  {schema}.outbox_note_cleared({schema}.outbox_retention_run, bigint, integer, bigint),
  {schema}.outbox_next_candidates({schema}.outbox_retention_run, integer),
  {schema}.outbox_draft_retention(text, jsonb), {schema}.outbox_begin_retention(text, jsonb, integer),
  {schema}.outbox_is_allowed_policy(text, jsonb), {schema}.outbox_begin_retention_by_policy(text, jsonb, integer),
  {schema}.outbox_unlocked(uuid[]), {schema}.outbox_take_away({schema}.outbox_retention_run, uuid[]),
  {schema}.outbox_retention_waits({schema}.outbox_retention_run, text),
  {schema}.outbox_step_retention(bigint, text, text, text, integer, integer, double precision),
  {schema}.outbox_retain(bigint, text, text, text, integer, integer, double precision),
  {schema}.outbox_retain_by_policy(bigint, text, integer, integer, double precision),
  {schema}.outbox_preview_retention(jsonb, integer), {schema}.outbox_missing_archived(bigint, bigint),
  {schema}.outbox_purge_archive(text, text, interval, text, text, integer),
  {schema}.outbox_day_of(timestamptz), {schema}.outbox_start_of(integer), {schema}.outbox_first_position(integer),
  {schema}.outbox_bound(text, integer), {schema}.outbox_relation(text), {schema}.outbox_refuse_partition(),
  {schema}.outbox_dress_partition(text, text), {schema}.outbox_try_lock_partitions(),
  {schema}.outbox_make_period(integer, integer), {schema}.outbox_abandon_partitions(), {schema}.outbox_tend_partitions(),
  {schema}.outbox_refuse_unpartitionable(), {schema}.outbox_refuse_later_than(integer),
  {schema}.outbox_prepare_partitions(integer), {schema}.outbox_validate_partitions(text),
  {schema}.outbox_grants_on(regclass), {schema}.outbox_views_of(regclass), {schema}.outbox_parts_of(regclass),
  {schema}.outbox_put_above(text, integer), {schema}.outbox_exchange_tables(integer, boolean), {schema}.outbox_convert_to_partitions(),
  {schema}.outbox_strip_rights(regclass), {schema}.outbox_is_under_way(xid8),
  {schema}.outbox_published_since(pg_snapshot, integer),
  {schema}.outbox_set_storage(text, text), {schema}.outbox_columns_of(text), {schema}.outbox_put_together(text),
  {schema}.outbox_unpartition(),
  {schema}.outbox_droppable_days(timestamptz), {schema}.outbox_survivors({schema}.outbox_retention_run, integer),
  {schema}.outbox_staying_positions(uuid[], integer), {schema}.outbox_survey_period(bigint),
  {schema}.outbox_survey_until({schema}.outbox_retention_run, integer),
  {schema}.outbox_move_to_rest(text, text, anyarray, integer), {schema}.outbox_exchange_rest(text, integer),
  {schema}.outbox_drop_period({schema}.outbox_period_survey),
  {schema}.outbox_drop_next_period({schema}.outbox_retention_run),
  {schema}.outbox_publication(), {schema}.outbox_published_as(), {schema}.outbox_put_in_publication()
  from public, {publisher}, {worker}, {operator}, {viewer};

revoke all on procedure
  {schema}.outbox_publish(text, uuid, text, text, integer, text, text, text, bigint, jsonb, jsonb, timestamptz)
  from public, {publisher}, {worker}, {operator}, {viewer};

grant usage on schema {schema} to {publisher}, {worker}, {operator}, {viewer};

-- == publisher: writes events, and nothing else ===================================================

-- Not xid, id and created_at: those are the database's. sequence is the request to be numbered.
grant insert (event_id, stream, event_type, schema_version, aggregate_type, aggregate_id, ordering_key, sequence,
              payload, headers, occurred_at)
  on {schema}.outbox_event to {publisher};
grant execute on function {schema}.outbox_uuid_v7() to {publisher};
grant execute on procedure
  {schema}.outbox_publish(text, uuid, text, text, integer, text, text, text, bigint, jsonb, jsonb, timestamptz)
  to {publisher};

-- == worker: claims, settles, registers, retains; cannot write events or decide on dead letters ====

grant select on
  {schema}.outbox_event, {schema}.outbox_subscription, {schema}.outbox_delivery, {schema}.outbox_lane,
  {schema}.outbox_worker, {schema}.outbox_dead_letter, {schema}.outbox_unmatched, {schema}.outbox_inbox,
  {schema}.outbox_migration, {schema}.outbox_amendment, {schema}.outbox_lease, {schema}.outbox_in_hand,
  {schema}.outbox_scope
  to {worker};
-- What fails in the log stream begins as a delivery that was tried once.
grant insert (subscription_id, lane, id, event_id, ordering_key, max_attempts, status, fresh, held, attempt_count,
              next_retry_at, last_attempt_at, last_error_code, last_error_message, attempt_history)
  on {schema}.outbox_delivery to {worker};
grant update (status, fresh, held, held_since, suspect, attempt_count, next_retry_at, last_attempt_at, locked_by,
              locked_until, lease_token, last_error_code, last_error_message, attempt_history, updated_at, processed_at)
  on {schema}.outbox_delivery to {worker};
grant insert (name, streams, stream_like, event_types, order_by, lanes, on_dead, max_attempts, start_from, start_at,
              state, joined_snapshot, engine)
  on {schema}.outbox_subscription to {worker};
grant update (streams, stream_like, event_types, on_dead, max_attempts, start_from, start_at, state, generation,
              joined_snapshot, barrier, swept_to, served_to, updated_at)
  on {schema}.outbox_subscription to {worker};
grant insert (subscription_id, lane), update (owner, until, epoch) on {schema}.outbox_lane to {worker};
grant insert, update, delete on {schema}.outbox_worker, {schema}.outbox_lease to {worker};
-- Beside these, the log itself asks for a login with REPLICATION, which only a superuser gives.
grant select, insert, update on {schema}.outbox_stream to {worker};
grant execute on function {schema}.outbox_publication(), {schema}.outbox_published_as() to {worker};
grant insert (subscription, subscription_id, lane, position, event_id, stream, event_type, schema_version,
              aggregate_type, aggregate_id, ordering_key, payload, headers, occurred_at, error_code, error_message,
              attempt_history, retry_count)
  on {schema}.outbox_dead_letter to {worker};
grant update (reported_at) on {schema}.outbox_unmatched to {worker};
-- The monitor runs in workers: whose turn it is, which alarms are on, and of which dead letters somebody was told.
grant update (told_at) on {schema}.outbox_dead_letter to {worker};
grant select, insert, update, delete on {schema}.outbox_alarm to {worker};
grant select, update on {schema}.outbox_monitor to {worker};
grant insert (subscription, event_id) on {schema}.outbox_inbox to {worker};
grant usage on sequence {schema}.outbox_lease_token to {worker};
grant select, update on sequence {schema}.outbox_registry_xid to {worker};
grant select on sequence {schema}.outbox_event_id_seq to {worker};
grant execute on function
  {schema}.outbox_matches(text[], text[], text, text), {schema}.outbox_lane_of(text, smallint),
  {schema}.outbox_key_of(text, text, text, text), {schema}.outbox_require_read_committed(),
  {schema}.outbox_lock_registry(), {schema}.outbox_close_retired()
  to {worker};
-- Not an operator's rights: it retries what its own code was told to, and is recorded as that policy.
grant execute on function
  {schema}.outbox_redrive_by_policy(integer, text, text[], text[], double precision, double precision, integer)
  to {worker};

-- Nor here: what it removes is done with, by the rules of the functions, goes by a policy that the owner has allowed, and
-- is recorded as the act of that policy.
grant select on {schema}.outbox_archive, {schema}.outbox_retention_run to {worker};
grant execute on function
  {schema}.outbox_begin_retention_by_policy(text, jsonb, integer),
  {schema}.outbox_retain_by_policy(bigint, text, integer, integer, double precision)
  to {worker};

-- Makes partitions ahead, and can do nothing else to them.
grant execute on function {schema}.outbox_tend_partitions(), {schema}.outbox_survey_period(bigint) to {worker}, {operator};

-- == viewer: reads ================================================================================

grant select on
  {schema}.outbox_event, {schema}.outbox_sequence, {schema}.outbox_subscription, {schema}.outbox_delivery,
  {schema}.outbox_lane, {schema}.outbox_worker, {schema}.outbox_dead_letter, {schema}.outbox_operator_log,
  {schema}.outbox_unmatched, {schema}.outbox_inbox, {schema}.outbox_amendment, {schema}.outbox_redrive_plan,
  {schema}.outbox_redrive_item, {schema}.outbox_migration, {schema}.outbox_alarm, {schema}.outbox_monitor,
  {schema}.outbox_scope, {schema}.outbox_operator_log_head, {schema}.outbox_stand_in, {schema}.outbox_lease,
  {schema}.outbox_in_hand, {schema}.outbox_export, {schema}.outbox_export_head, {schema}.outbox_archive,
  {schema}.outbox_archived, {schema}.outbox_retention_run, {schema}.outbox_retention_policy,
  {schema}.outbox_partitioning, {schema}.outbox_period, {schema}.outbox_period_survey, {schema}.outbox_stream
  to {viewer}, {operator};
grant execute on function
  {schema}.outbox_matches(text[], text[], text, text),
  {schema}.outbox_hash(jsonb), {schema}.outbox_operator_hash({schema}.outbox_operator_log),
  {schema}.outbox_export_hash({schema}.outbox_export), {schema}.outbox_is_exported(text, bigint, uuid)
  to {viewer}, {operator};
grant execute on function
  {schema}.outbox_error_pattern(text), {schema}.outbox_lane_of(text, smallint),
  {schema}.outbox_key_of(text, text, text, text)
  to {viewer}, {operator};
grant execute on function
  {schema}.outbox_draft_retention(text, jsonb), {schema}.outbox_preview_retention(jsonb, integer),
  {schema}.outbox_missing_archived(bigint, bigint)
  to {viewer}, {operator};
grant select on sequence
  {schema}.outbox_event_id_seq, {schema}.outbox_registry_xid, {schema}.outbox_lease_token
  to {viewer}, {operator};

-- == operator: reads, decides on dead letters, exports, retains, pauses, retires; each act is recorded =

grant execute on function
  {schema}.outbox_retry(bigint, text, text), {schema}.outbox_resolve(bigint, text, text),
  {schema}.outbox_set_paused(text, boolean, text, text),
  {schema}.outbox_retire(text, text, text, boolean, boolean), {schema}.outbox_close_retired(),
  {schema}.outbox_purge(interval, text, text, text, integer),
  {schema}.outbox_amend(bigint, jsonb, text, text, integer, uuid),
  {schema}.outbox_move_aside(text, text, text, text, integer), {schema}.outbox_plan_redrive(jsonb),
  {schema}.outbox_begin_redrive(bigint, text, double precision, integer, double precision, integer, boolean),
  {schema}.outbox_step_redrive(bigint, text, text), {schema}.outbox_cancel_redrive(bigint, text, text),
  {schema}.outbox_record_export(text, bigint, bigint, bigint, text, text, boolean, uuid[], text, text),
  {schema}.outbox_verify_export(bigint, text, text, text),
  {schema}.outbox_begin_retention(text, jsonb, integer),
  {schema}.outbox_retain(bigint, text, text, text, integer, integer, double precision),
  {schema}.outbox_purge_archive(text, text, interval, text, text, integer)
  to {operator};
grant insert (operator, action, target, affected, note) on {schema}.outbox_operator_log to {operator};
