import * as fs from 'node:fs'
import * as os from 'node:os'
import { expect, test, vi } from 'vitest'
import { files } from '../../src/providers/files/index.ts'
import { useFiles } from '../support/files.ts'
import { textAt } from '../support/folder.ts'

const canary = 'CANARY-51c3aa'

const { folder, open } = useFiles(canary)

test('a root that is /, a folder of the system, relative, missing or a file is refused with the reason (PT29)', async () => {
  folder.write({ file: '' })
  const refusal = (root: string) =>
    files({ root }).then(
      () => 'opened',
      (error: { kind: string; message: string }) => `${error.kind}: ${error.message}`,
    )
  fs.symlinkSync('/', folder.at('to-slash'))
  fs.symlinkSync('/proc/self', folder.at('to-proc'))
  for (const root of [
    '/',
    '//',
    '/proc',
    '/proc/self',
    '/proc/self/root',
    '/sys',
    '/dev',
    '/dev/shm',
    folder.at('to-slash'),
    folder.at('to-proc'),
  ])
    expect(await refusal(root), root).toMatch(/^invalid: .*Give a directory with your files/)
  expect(await refusal('')).toMatch(/^invalid: .*empty/)
  expect(await refusal('.')).toMatch(new RegExp(`^invalid: .*not absolute.*${process.cwd()}`))
  expect(await refusal('~/x')).toMatch(/^invalid: .*not absolute/)
  expect(await refusal(folder.at('none'))).toMatch(/^invalid: .*does not exist/)
  expect(await refusal(folder.at('file'))).toMatch(/^invalid: .*not a directory/)
  expect(await refusal(folder.at('file/x'))).toMatch(/^invalid: .*does not exist/)
  expect(await refusal('/tmp\0/x')).toMatch(/^invalid: /)
})

test('a root with a final slash, or behind a link, stays the directory that it was at the start (PT29)', async () => {
  folder.write({ f: 'inside' })
  const link = `${folder.outside}/link`
  fs.symlinkSync(folder.root, link)
  for (const root of [`${folder.root}/`, `${folder.root}//`, link, `${folder.root}/../root`])
    expect(await textAt(await open({ root }), 'f')).toBe('inside')
  const provider = await open({ root: link })
  fs.rmSync(link)
  fs.symlinkSync(folder.outside, link)
  expect(await textAt(provider, 'f')).toBe('inside')
})

test('a home directory as root is opened with a warning (PT29)', async () => {
  vi.stubEnv('HOME', folder.root)
  const log = vi.fn()
  try {
    await open({ log })
    expect(os.homedir()).toBe(folder.root)
    expect(log).toHaveBeenCalledWith('warn', expect.stringContaining('home'), expect.anything())
  } finally {
    vi.unstubAllEnvs()
  }
})
