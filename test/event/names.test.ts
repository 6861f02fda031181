import { describe, expect, test } from 'vitest'
import { nameProblem } from '../../src/event/names.ts'

const UMBRA = `
  BotInstalled BotKicked GuildOwnerChanged GuildDeleted
  BillingKeyIssued BillingKeyDeleted SubscriptionStarted PaymentSucceeded PaymentFailed PaymentFailedFinal
  SubscriptionCanceled SubscriptionSuspended PlanUpgraded PlanDowngraded
  LicenseGranted LicenseExtended LicenseDowngraded LicenseSuspended LicenseCanceled
  SnapshotCreated SnapshotDeleted RestoreStarted RestoreCompleted RestoreFailed AntiNukeTriggered AntiNukeActioned
  MemberJoinedViaWebJoin MemberRestored UserRegistered UserSessionCreated
`
  .trim()
  .split(/\s+/)

const OTHERS = `
  LedgerPosted LedgerReversed RawDataIngested SliceCreated OrderPlaced OrderAccepted OrderFilled OrderSent OrderShipped
  MoneyWithdrawn PricePaid ItemSold TicketBought OfferMade ServerBuilt TripBegun ReviewWritten StockTaken RefundGiven
  ParcelLost AuctionWon SeatHeld PromiseKept MemberLeft QuotaMet ItemPut LimitSet PriceCut StoreShut BillSplit
  BudgetSpent PasswordReset IndexRebuilt AccountOverdrawn LimitSetByOperator ServerShutDown
  Created KYCApproved OrderV2Placed TermsAgreed CrewFed AccountFrozen
`
  .trim()
  .split(/\s+/)

const REFUSED = `
  PaymentSuccess OrderPlace paymentFailed Payment_Failed PAYMENT_FAILED payment-failed OrderFeed OrderNeed SeedSeed
  WindSpeed VideoEmbed ClosedAccount SavedSearch OrderReadModel CharacterSetUpdate Bed OrderCreate 주문생성됨
`
  .trim()
  .split(/\s+/)

describe('the past-tense rule', () => {
  test('U5 the catalogue has thirty names', () => {
    expect(UMBRA).toHaveLength(30)
  })

  test.each([...UMBRA, ...OTHERS])('U5 accepts %s', (name) => {
    expect(nameProblem(name, 'event', 'past-tense')).toBeNull()
  })

  test.each(REFUSED)('U5 refuses %s', (name) => {
    expect(nameProblem(name, 'event', 'past-tense')).toContain('must')
  })

  test('a command may be in the imperative, but is PascalCase all the same', () => {
    expect(nameProblem('CreateOrderAttempt', 'command', 'past-tense')).toBeNull()
    expect(nameProblem('createOrderAttempt', 'command', 'past-tense')).toContain('PascalCase')
  })

  test('the refusal says what would be right', () => {
    expect(nameProblem('PaymentSuccess', 'event', 'past-tense')).toContain('PaymentSucceeded')
  })
})

describe('other rules', () => {
  test('L2 upper-snake accepts LEDGER_POSTED and refuses LedgerPosted', () => {
    expect(nameProblem('LEDGER_POSTED', 'event', 'upper-snake')).toBeNull()
    expect(nameProblem('LedgerPosted', 'event', 'upper-snake')).toContain('UPPER_SNAKE_CASE')
    expect(nameProblem('LEDGER__POSTED', 'event', 'upper-snake')).toContain('UPPER_SNAKE_CASE')
  })

  test('any accepts whatever can be stored', () => {
    expect(nameProblem('order.placed.v1', 'event', 'any')).toBeNull()
    expect(nameProblem('주문생성됨', 'event', 'any')).toBeNull()
    expect(nameProblem('', 'event', 'any')).toContain('1 to 255')
    expect(nameProblem('with space', 'event', 'any')).toContain('1 to 255')
    expect(nameProblem('*', 'event', 'any')).toContain('1 to 255')
    expect(nameProblem('__proto__', 'event', 'any')).toContain('1 to 255')
    expect(nameProblem('x'.repeat(256), 'event', 'any')).toContain('1 to 255')
  })

  test('a global pattern judges every name alike', () => {
    const rule = /^order\./g
    expect(nameProblem('order.placed', 'event', rule)).toBeNull()
    expect(nameProblem('order.placed', 'event', rule)).toBeNull()
    expect(nameProblem('user.left', 'event', rule)).toContain('must match')
  })

  test('a function has the last word', () => {
    const rule = (name: string): string | null => (name.startsWith('X') ? null : 'must start with X')
    expect(nameProblem('Xy', 'event', rule)).toBeNull()
    expect(nameProblem('Ay', 'event', rule)).toBe('must start with X')
  })
})
