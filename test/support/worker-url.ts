/**
 * Leads to sessions that are set as a worker's own are. In others each statement has a transaction around it: there are more
 * seams, how many is chance, and a statement of which the reply is lost is not done but rolled back.
 */
export function fitForWorkers(url: string): string {
  const fit = new URL(url)
  const options = fit.searchParams.get('options') ?? ''
  fit.searchParams.set('options', `${options} -c enable_partition_pruning=off`.trim())
  return fit.href
}
