/** The name of a subscription's slot in this database; both are expressions of SQL. */
export function slotNameSql(schema: string, subscriptionId: string): string {
  return `'commitpost_' || substr(md5(current_database() || '.' || ${schema}), 1, 12) || '_' || ${subscriptionId}`
}
