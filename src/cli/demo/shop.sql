-- The tables and statements of the demo's shop. {schema} is replaced by the quoted schema name.

-- name: createTables
create table {schema}.shop_order (
  id         bigint      generated always as identity primary key,
  customer   text        not null,
  amount     integer     not null check (amount > 0),
  status     text        not null check (status in ('placed', 'paid', 'shipped')),
  updated_at timestamptz not null default now()
);
-- What the subscription "ledger" writes: one entry for each event, and whether it was the next one of its order.
create table {schema}.shop_ledger (
  entry      bigint  generated always as identity primary key,
  order_id   text    not null,
  sequence   bigint  not null,
  event_type text    not null,
  amount     integer not null,
  in_order   boolean not null,
  unique (order_id, sequence)
);

-- name: insertOrder
insert into {schema}.shop_order (customer, amount, status) values ($1, $2, 'placed') returning id::text as id;

-- name: updateOrder
update {schema}.shop_order set status = $2, updated_at = now() where id = $1;

-- name: appendLedger
insert into {schema}.shop_ledger (order_id, sequence, event_type, amount, in_order)
  select $1::text, $2::bigint, $3::text, $4::integer,
         $2::bigint = 1 + coalesce((select max(l.sequence) from {schema}.shop_ledger l where l.order_id = $1::text), 0);

-- name: auditLedger
select count(*)::integer as entries, count(distinct order_id)::integer as orders,
       count(*) filter (where not in_order)::integer as violations
  from {schema}.shop_ledger;
