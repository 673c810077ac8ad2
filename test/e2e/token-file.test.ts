import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hashToken } from '../../src/server/auth/caller.ts'
import { addToken, readTokenFile, revokeToken } from '../../src/server/auth/token-file.ts'
import { createTokenVerifier } from '../../src/server/auth/tokens.ts'
import { main, run } from '../support/cli.ts'
import { until } from '../support/live.ts'

let folder = ''
let file = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hikidashi-tokens-'))
  file = join(folder, 'tokens.json')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('the token file', () => {
  test('holds no token, and is readable by its owner only', async () => {
    const { token, stored } = await addToken(file, { roles: ['reader'], name: 'ci', expires: Date.UTC(2100, 0) })
    expect(token).toMatch(/^hkd_[\w-]{43}$/)
    const text = await readFile(file, 'utf8')
    expect(text).not.toContain(token.slice(4))
    expect(JSON.parse(text)).toEqual({ version: 1, tokens: [stored] })
    expect(stored).toMatchObject({
      name: 'ci',
      roles: ['reader'],
      sha256: hashToken(token),
      expires: '2100-01-01T00:00:00.000Z',
    })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readdir(folder)).toEqual(['tokens.json'])
  })

  test('loses no token when many additions or revocations run at once', async () => {
    const added = await Promise.all(Array.from({ length: 5 }, (_, i) => addToken(file, { roles: [], name: `t${i}` })))
    await Promise.all(added.slice(0, 2).map(({ stored }) => revokeToken(file, stored.id)))
    const { tokens } = await readTokenFile(file)
    expect(new Set(tokens.map(({ id }) => id))).toEqual(new Set(added.slice(2).map(({ stored }) => stored.id)))
    expect(await readdir(folder)).toEqual(['tokens.json'])
  })

  test('loses no token when four processes add one each at once', async () => {
    const add = (name: string) => run(['token', 'add', '--tokens', file, '--name', name], { cwd: folder })
    const results = await Promise.all(['a', 'b', 'c', 'd'].map(add))
    expect(
      results.map(({ code }) => code),
      main,
    ).toEqual([0, 0, 0, 0])
    const { tokens } = await readTokenFile(file)
    expect(tokens.map(({ name }) => name).sort()).toEqual(['a', 'b', 'c', 'd'])
  })

  test('names its lock file in the error if another process holds the lock', async () => {
    await writeFile(`${file}.lock`, '')
    await expect(addToken(file, { roles: [] })).rejects.toMatchObject({
      message: expect.stringContaining(`${file}.lock`),
    })
  })

  test('is the file that the configuration names, and hikidashi token adds, lists and revokes its tokens', async () => {
    const token = (...words: readonly string[]) => run(['token', ...words], { cwd: folder })
    expect(await token('add')).toMatchObject({ code: 2, out: '', err: expect.stringContaining('--tokens') })
    await writeFile(join(folder, 'hikidashi.json'), '{ "http": { "auth": { "tokens": "tokens.json" } } }')
    const added = await token('add', '--role', 'a', '--role', 'b', '--name', 'x\u001b[31m', '--expires', '12h')
    expect(added).toMatchObject({ code: 0, out: expect.stringMatching(/^hkd_[\w-]{43}\n$/) })
    expect(added.err).not.toContain('hkd_')
    const [{ id = '' } = {}] = (await readTokenFile(file)).tokens
    const { out } = await token('list')
    expect(out).toMatch(new RegExp(`^ID .*\n${id}  20\\S+Z  20\\S+Z  a,b +x\\\\u001b\\[31m\n$`))
    expect(await token('add', '--expires', 'soon')).toMatchObject({ code: 2, out: '' })
    expect(await token('revoke', 'nobody')).toMatchObject({ code: 4, out: '' })
    expect(await token('revoke', id)).toMatchObject({ code: 0, out: '' })
    expect(await token('list')).toMatchObject({ code: 0, out: '', err: expect.stringContaining('no tokens') })
  })

  const entry = { id: 'a', roles: ['r'], created: '2026-01-01T00:00:00Z', sha256: hashToken('x') }
  test.each<[string, unknown]>([
    ['the digest of the empty token', { version: 1, tokens: [{ ...entry, sha256: hashToken('') }] }],
    ['the digest of the word undefined', { version: 1, tokens: [{ ...entry, sha256: hashToken('undefined') }] }],
    ['a missing digest', { version: 1, tokens: [{ ...entry, sha256: undefined }] }],
    ['half a digest', { version: 1, tokens: [{ ...entry, sha256: 'abc' }] }],
    ['no roles', { version: 1, tokens: [{ ...entry, roles: undefined }] }],
    ['an invalid role', { version: 1, tokens: [{ ...entry, roles: [null] }] }],
    ['an invalid expiry', { version: 1, tokens: [{ ...entry, expires: 'soon' }] }],
    ['another version', { version: 2, tokens: [] }],
    ['no tokens', { version: 1 }],
    ['an array', []],
  ])('is refused with %s', async (_, content) => {
    await writeFile(file, JSON.stringify(content), { mode: 0o600 })
    await expect(readTokenFile(file)).rejects.toMatchObject({ kind: 'invalid' })
    await expect(addToken(file, { roles: [] })).rejects.toMatchObject({ kind: 'invalid' })
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(JSON.parse(JSON.stringify(content)))
  })

  test('is refused if others could write to it', async () => {
    await addToken(file, { roles: [] })
    await chmod(file, 0o620)
    await expect(readTokenFile(file)).rejects.toMatchObject({ message: expect.stringContaining('chmod 600') })
  })
})

describe('tokens of the token file', () => {
  test('are valid as soon as they are added, and invalid as soon as they are revoked', async () => {
    const verifier = await createTokenVerifier(file, () => {})
    const { token, stored } = await addToken(file, { roles: ['reader'] })
    const verdict = await verifier.verify(token)
    expect(verdict).toEqual({
      grant: {
        principal: { id: JSON.stringify(['token', stored.id]), roles: ['reader'] },
        expires: Number.POSITIVE_INFINITY,
      },
    })
    await revokeToken(file, stored.id)
    expect(await verifier.verify(token)).toHaveProperty('fault')
  })

  test('are refused after their expiry', async () => {
    const verifier = await createTokenVerifier(file, () => {})
    const { token } = await addToken(file, { roles: [], expires: Date.now() - 1 })
    expect(await verifier.verify(token)).toEqual({ fault: 'it has expired' })
  })

  test('report a revocation or change to those who watch the token, and to nobody else', async () => {
    const verifier = await createTokenVerifier(file, () => {})
    const [one, two, three] = await Promise.all(['a', 'b', 'c'].map((role) => addToken(file, { roles: [role] })))
    const ended: string[] = []
    const forget: (() => void)[] = []
    for (const [name, added] of Object.entries({ one, two, three })) {
      const verdict = await verifier.verify(added?.token ?? '')
      if ('grant' in verdict)
        forget.push(verifier.watch?.(added?.token ?? '', verdict.grant, () => ended.push(name)) ?? (() => {}))
    }
    await revokeToken(file, one?.stored.id ?? '')
    await until(() => ended.includes('one'), 20_000)
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace('"b"', '"changed"'))
    await until(() => ended.includes('two'), 20_000)
    expect(ended).not.toContain('three')
    for (const give of forget) give()
  })

  test('are refused while the file is not valid JSON, and once it is deleted', async () => {
    const logged: string[] = []
    const verifier = await createTokenVerifier(file, (_, message) => logged.push(message))
    const { token } = await addToken(file, { roles: [] })
    const text = await readFile(file, 'utf8')
    await writeFile(file, `${text}}`)
    for (let i = 0; i < 3; i++) await expect(verifier.verify(token)).rejects.toMatchObject({ kind: 'unavailable' })
    expect(logged.filter((message) => message.includes('none is accepted'))).toHaveLength(1)
    await writeFile(file, text)
    expect(await verifier.verify(token)).toHaveProperty('grant')
    await rm(file)
    expect(await verifier.verify(token)).toHaveProperty('fault')
  })
})
