import { describe, test } from 'vitest'
import { remote } from '../../src/providers/remote/index.ts'
import { describeProvider } from '../../src/testing/index.ts'
import { fixture } from '../support/mcp-servers.ts'

const missing = ['notes', 'notes/none', 'notes/=a', 'file/srv/docs', '=', '==/x', 'memo/=today', 'memo:/today']

describe.each(['sdk100', 'sdk124', 'official'])('with a server of %s,', (sdk) => {
  describeProvider(
    { describe, test },
    'the provider remote',
    async () => {
      const provider = remote({ target: fixture('varied', sdk) })
      return {
        provider,
        expectation: {
          entries: {
            'file/srv/docs/a.md': { text: 'read file:///srv/docs/a.md', mimeType: 'text/markdown' },
            'file/srv/x y.txt': { text: 'read file:///srv/x%20y.txt' },
            'notes/a/b?x=1': { text: 'read notes://a/b?x=1' },
            'memo/today': { bytes: Uint8Array.of(0x89, 0x50, 0x4e, 0x47) },
            'data:/,x': {},
          },
          more: true,
          missing,
        },
        dispose: async () => {},
      }
    },
    { timeoutMs: 30_000 },
  )
})
