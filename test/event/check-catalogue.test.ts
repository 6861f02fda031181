import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Catalogue } from '../../src/event/catalogue.ts'
import {
  assertCompatible,
  checkCatalogue,
  IncompatibleCatalogueError,
} from '../../src/event/check-catalogue.ts'
import { defineEvents } from '../../src/event/define-events.ts'
import { describeCatalogue, snapshotText } from '../../src/event/describe-catalogue.ts'
import { InvalidOptionsError } from '../../src/runtime/errors.ts'

const base = { stream: 'shop.order.event', aggregate: 'order' }
const events = (shape: z.ZodRawShape): Catalogue =>
  defineEvents({ OrderPlaced: { ...base, schema: z.object(shape), sensitive: ['email'] } })
const first = events({ id: z.string(), email: z.string() })

describe('the snapshot of a catalogue', () => {
  test('L5 is plain JSON, the same for the same catalogue', () => {
    expect(JSON.parse(snapshotText(first))).toEqual(describeCatalogue(first))
    expect(snapshotText(events({ email: z.string(), id: z.string() }))).toBe(snapshotText(first))
  })

  test('tells everything a comparison needs', () => {
    expect(describeCatalogue(first)).toEqual({
      format: 1,
      events: [
        {
          name: 'OrderPlaced',
          storedAs: 'OrderPlaced',
          kind: 'event',
          stream: 'shop.order.event',
          aggregate: 'order',
          version: 1,
          oldestVersion: 1,
          upcastsFrom: null,
          sequenced: false,
          jsonSchema: {
            $schema: 'https://json-schema.org/draft/2020-12/schema',
            type: 'object',
            properties: { id: { type: 'string' }, email: { type: 'string' } },
            required: ['email', 'id'],
          },
          sensitive: ['email'],
        },
      ],
    })
  })

  test('a payload with a field that JSON Schema cannot say is still described', () => {
    const dated = defineEvents({
      OrderPlaced: { ...base, schema: z.object({ id: z.string(), at: z.coerce.date() }) },
    })
    expect(describeCatalogue(dated).events[0]?.jsonSchema).toMatchObject({
      properties: { id: { type: 'string' }, at: {} },
    })
  })

  test('without one everything is new', () => {
    expect(checkCatalogue(first, null)).toMatchObject({
      compatible: true,
      upToDate: false,
      findings: [{ kind: 'event-added' }],
      snapshot: snapshotText(first),
    })
  })

  test('that is up to date says so, whatever the ends of its lines', () => {
    const text = snapshotText(first)
    expect(checkCatalogue(first, text)).toMatchObject({ compatible: true, upToDate: true, findings: [] })
    expect(checkCatalogue(first, text.replaceAll('\n', '\r\n')).upToDate).toBe(true)
  })

  test('L5 a compatible change passes and renews the snapshot', () => {
    const wider = events({ id: z.string(), email: z.string(), note: z.string().optional() })
    const check = checkCatalogue(wider, snapshotText(first))
    expect(check).toMatchObject({ compatible: true, upToDate: false, snapshot: snapshotText(wider) })
    expect(() => assertCompatible(wider, snapshotText(first))).not.toThrow()
  })

  test('L5 an incompatible change throws and names every finding at once', () => {
    const broken = events({ id: z.number(), email: z.string(), total: z.number() })
    expect(checkCatalogue(broken, snapshotText(first)).compatible).toBe(false)
    expect(() => assertCompatible(broken, snapshotText(first))).toThrow(IncompatibleCatalogueError)
    expect(() => assertCompatible(broken, snapshotText(first))).toThrow(
      /OrderPlaced payload\.id: was string, is now number\n- OrderPlaced payload\.total: was added as required/,
    )
  })

  test.each(['', 'not json', '{}', '{"format":2,"events":[]}', '{"format":1,"events":[1]}', 'null'])(
    'a text that is none is refused: %s',
    (text) => {
      expect(() => checkCatalogue(first, text)).toThrow(InvalidOptionsError)
    },
  )
})
