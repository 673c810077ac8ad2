import { describe, expect, test } from 'vitest'
import { reasonNotToRun, required } from '../../conformance/scenarios.ts'
import { judge } from '../../conformance/suite.ts'

const success = (id: string) => ({ id, status: 'SUCCESS' as const })
const schema = success('wire-schema-valid')

describe('a conformance scenario', () => {
  test('passes when one of its own checks succeeded and the suite exited with 0', () => {
    expect(judge('ping', 0, '', [success('ping'), schema])).toEqual({
      scenario: 'ping',
      passed: 1,
      faults: [],
    })
  })

  test('does not pass without checks, or with checks of the schema only', () => {
    expect(judge('ping', 0, 'not applicable', []).faults).toEqual(['it did not run: not applicable'])
    expect(judge('ping', 0, '', [schema]).faults).toEqual(['it checked nothing'])
    expect(judge('ping', 0, '', [{ id: 'a', status: 'SKIPPED' }, schema]).faults).toEqual([
      'a: it was skipped',
      'it checked nothing',
    ])
  })

  test('does not pass when one check failed, warned or was skipped', () => {
    for (const status of ['FAILURE', 'WARNING', 'SKIPPED'] as const)
      expect(judge('ping', 0, '', [success('a'), { id: 'b', status, errorMessage: 'no' }]).faults).toEqual(['b: no'])
  })

  test('does not pass when the suite fails for a reason of its own', () => {
    expect(judge('ping', 1, '', [success('ping')]).faults).toEqual(['the suite ended with code 1'])
  })

  test('is not both required and left out', () => {
    for (const scenario of Object.values(required).flat()) expect(reasonNotToRun(scenario)).toBeUndefined()
    expect(reasonNotToRun('something-new')).toBeUndefined()
  })
})
