import type { ClaimedDelivery } from '../../delivery/delivery.ts'
import type { ClaimRequest, LaneClaimRequest, LaneDelivery, SuspectClaimRequest } from '../queue-store.ts'
import { claim, claimCandidates } from './claim.ts'
import type { Candidate } from './claim-candidate.ts'
import { claimLanesCarefully, laneCandidates } from './claim-lanes.ts'
import { claimSuspects, suspectCandidates } from './claim-suspects.ts'
import type { PgPool } from './client.ts'
import type { QuotedSchema } from './identifiers.ts'
import type { LaneClaims } from './lane-claims.ts'
import type { LowWaterBound } from './low-water.ts'
import type { ClaimWay } from './refused-rows.ts'

const ONE = 1

/** Claims of an unordered subscription. One statement each, which touches what it takes and no more. */
export function unorderedWay(
  pool: PgPool,
  schema: QuotedSchema,
  request: ClaimRequest,
  bound: LowWaterBound,
  duePlaces: number,
): ClaimWay<ClaimedDelivery> {
  const take: ClaimWay<ClaimedDelivery>['take'] = (limit, around) =>
    claim(pool, schema, { ...request, limit }, bound, Math.min(limit, duePlaces), positionsOf(around))
  return {
    take,
    takeCarefully: take,
    look: (around) =>
      claimCandidates(
        pool,
        schema,
        { ...request, limit: ONE },
        bound,
        Math.min(ONE, duePlaces),
        positionsOf(around),
      ),
  }
}

/** Claims of lanes. What is left alone has a key, of which nothing is taken. */
export function lanesWay(
  pool: PgPool,
  schema: QuotedSchema,
  claims: LaneClaims,
  request: LaneClaimRequest,
  bound: LowWaterBound,
  duePlaces: number,
): ClaimWay<LaneDelivery> {
  const claimOf = (limit: number, around: readonly Candidate[]) => ({
    request: { ...request, limit },
    bound,
    duePlaces,
    around: around.flatMap(({ key }) => (key === null ? [] : [key])),
  })
  return {
    take: (limit, around) => claims.next(claimOf(limit, around)),
    takeCarefully: (limit, around) => claimLanesCarefully(pool, schema, claimOf(limit, around)),
    look: (around) => laneCandidates(pool, schema, claimOf(ONE, around)),
  }
}

/** Claims of suspects. Each is held, so nothing later of its key is claimed anyway. */
export function suspectsWay(
  pool: PgPool,
  schema: QuotedSchema,
  request: SuspectClaimRequest,
): ClaimWay<LaneDelivery> {
  const take: ClaimWay<LaneDelivery>['take'] = (limit, around) =>
    claimSuspects(pool, schema, { ...request, limit }, positionsOf(around))
  return {
    take,
    takeCarefully: take,
    look: (around) => suspectCandidates(pool, schema, { ...request, limit: ONE }, positionsOf(around)),
  }
}

function positionsOf(rows: readonly Candidate[]): readonly string[] {
  return rows.map(({ position }) => position)
}
