import { beforeAll, describe, expect, test } from 'vitest'
import { isObject } from '../../src/server/messages.ts'
import { openSchema, schemaRevisions } from '../support/wire-schema.ts'
import { type Recorded, recordSession } from '../support/wire-session.ts'

const sessions = schemaRevisions.flatMap((revision) =>
  (['stdio', 'HTTP'] as const).map((transport) => ({ revision, transport })),
)

/** What is wrong with a session: each fault with the message that has it. */
function faultsIn(recorded: readonly Recorded[], judge: ReturnType<typeof openSchema>): readonly string[] {
  return recorded.flatMap(({ message, method }) =>
    judge.faults(message, method).map((fault) => `${fault} in ${JSON.stringify(message).slice(0, 400)} (${method})`),
  )
}

describe.each(sessions)('on $revision over $transport', ({ revision, transport }) => {
  let recorded: readonly Recorded[] = []

  beforeAll(async () => {
    recorded = await recordSession(revision, transport)
  })

  test('every message is as the schema of the revision has it', () => {
    expect(faultsIn(recorded, openSchema(revision))).toEqual([])
  })

  test('no message has a field that the revision does not know', () => {
    expect(faultsIn(recorded, openSchema(revision, { closed: true }))).toEqual([])
  })
  test('print', () => {
    console.log(recorded.length)
  })
})
