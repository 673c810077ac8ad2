import { describe, expect, test } from 'vitest'
import { formatAnswer, parseQuestion, promptHooks } from '../../src/cli/hosts/hooks.ts'

describe('the hook of a host', () => {
  test.each(Object.entries(promptHooks))('of %s is answered in its form', (host, { event, folder }) => {
    const asked = { prompt: 'Why?', cwd: '/work', hook_event_name: event }
    expect(parseQuestion(host, asked, {})).toEqual({ prompt: 'Why?', folder: '/work' })
    expect(JSON.parse(formatAnswer(host, 'text'))).toEqual({
      hookSpecificOutput: { hookEventName: event, additionalContext: 'text' },
    })
    // The agent may have changed its folder.
    if (folder !== undefined)
      expect(parseQuestion(host, asked, { [folder]: '/project' })).toEqual({ prompt: 'Why?', folder: '/project' })
    expect(parseQuestion(host, { ...asked, hook_event_name: 'PreToolUse' }, {})).toBeUndefined()
    expect(parseQuestion(host, { ...asked, prompt: 1 }, {})).toBeUndefined()
    expect(parseQuestion(host, { ...asked, cwd: '' }, {})).toBeUndefined()
    expect(parseQuestion(host, 'text', {})).toBeUndefined()
  })
})
