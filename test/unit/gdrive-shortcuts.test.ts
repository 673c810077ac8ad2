import { expect, test } from 'vitest'
import type { DriveClient } from '../../src/providers/gdrive/client.ts'
import { type DriveFile, shortcutType } from '../../src/providers/gdrive/model.ts'
import { createDriveScanner } from '../../src/providers/gdrive/scan.ts'

test('a Drive mount follows at most 5,000 shortcuts to files outside, and logs that there are more', async () => {
  const targets = new Set<string>()
  const client = {
    file: async (id: string) => {
      targets.add(id)
      return { id, name: id, mimeType: 'text/plain', parents: ['elsewhere'] }
    },
  } as unknown as DriveClient
  const lines: string[] = []
  const scanner = createDriveScanner(client, 'anywhere', false, 100_000, (level, message) =>
    lines.push(`${level}: ${message}`),
  )
  const shortcut = (index: number): [string, DriveFile] => {
    const [id, target] = [`shortcut-${index}`, `target-${index}`]
    return [
      id,
      { id, name: id, type: shortcutType, target, parent: 'folder', version: '1', readable: true, trashed: false },
    ]
  }
  const files = new Map(Array.from({ length: 5001 }, (_, index) => shortcut(index)))
  await scanner.targets(files, new AbortController().signal)
  expect([targets.size, files.size]).toEqual([5000, 10_001])
  expect(lines).toEqual(['warn: too many shortcuts to files outside; further ones are not followed'])
})
