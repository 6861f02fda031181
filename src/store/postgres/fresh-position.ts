/**
 * The position of a delivery `d` as outbox_delivery_fresh has it: claims ask for it in this form, so that no other index
 * will do. The primary key has positions in order as well. The planner may take it for as good, and with it a claim
 * reads every delivery since the low-water bound, done or not.
 */
export const FRESH_POSITION = '(d.id + 0)'
