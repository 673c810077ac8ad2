import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Context, Provider } from '../../src/core/provider.ts'
import { requestConsent } from '../../src/providers/gdrive/credentials.ts'
import type { GdriveOptions } from '../../src/providers/gdrive/index.ts'
import { createTransport, toRequestFault } from '../../src/providers/gdrive/transport.ts'
import { fillDrive, openDrive } from '../support/drive-samples.ts'
import { type DriveStandIn, sendDriveError, startDrive } from '../support/drive-stand-in.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

const contextOf = (signal = new AbortController().signal): Context => ({ principal: { id: 'x', roles: [] }, signal })

let drive: DriveStandIn
let folder: string
const opened: Provider[] = []
/** What was logged or thrown: none of it may hold a token. */
const said: unknown[] = []
beforeEach(async () => {
  drive = await startDrive()
  fillDrive(drive)
  folder = await mkdtemp(join(tmpdir(), 'hikidashi-drive-'))
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await Promise.all(opened.splice(0).map((provider) => provider.close?.()))
  await drive.close()
  await rm(folder, { recursive: true })
  const words = said
    .splice(0)
    .map((one) => (one instanceof Error ? `${one.stack} ${JSON.stringify(one)}` : JSON.stringify(one)))
  expect(words.join('\n')).not.toMatch(/canary|Bearer|stand-in-client-secret|PRIVATE KEY/)
})

const open = async (options: Partial<GdriveOptions> = {}): Promise<Provider> => {
  const provider = await openDrive(drive, { log: (...words) => void said.push(words), ...options })
  opened.push(provider)
  return provider
}

async function read(provider: Provider, path = 'same-a', signal?: AbortSignal) {
  const [content] = await provider.read({ path, params: new Map() }, contextOf(signal)).catch((error: unknown) => {
    said.push(error)
    throw error
  })
  return content !== undefined && 'text' in content ? content.text : undefined
}

/** Keeps a permission as `hikidashi auth gdrive` does. */
async function keep(refreshToken = drive.oauth.addRefreshToken(), mode = 0o600): Promise<string> {
  const file = join(folder, 'token.json')
  const token = { version: 1, clientId: drive.oauth.client.id, refreshToken, created: '2026-01-01T00:00:00Z' }
  await writeFile(file, JSON.stringify(token), { mode: 0o600 })
  await chmod(file, mode)
  return file
}

const asPerson = (tokenFile: string) =>
  ({ credentials: { kind: 'person', client: drive.oauth.client, tokenFile } }) as const

describe('the credentials of a Google user', () => {
  test('are requested at the first read, give an error with advice once they are revoked, and are valid again after a new consent', async () => {
    const file = await keep()
    const provider = await open(asPerson(file))
    expect(await read(provider)).toBe('first')
    expect(drive.oauth.settings.given).toBe(1)
    drive.oauth.refreshTokens.clear()
    drive.oauth.expire()
    await expect(read(provider)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('hikidashi auth gdrive'),
    })
    await keep()
    expect(await read(provider)).toBe('first')
  })

  test('are renewed once for many requests at the same time', async () => {
    const provider = await open({ ...asPerson(await keep()), intervalMs: 60_000 })
    await read(provider)
    drive.oauth.expire()
    await Promise.all(['same-a', 'same-b', 'odd-1', 'odd-2', 'docs/plan', 'deck'].map((path) => read(provider, path)))
    expect(drive.oauth.settings.given).toBe(2)
  })

  test.each([
    ['0644', 0o644, /chmod 600/],
    ['0640', 0o640, /chmod 600/],
    ['0620', 0o620, /chmod 600/],
  ])(
    'are accepted only from a file to which no other user has access: mode %s is refused',
    async (_, mode, message) => {
      await expect(read(await open(asPerson(await keep(undefined, mode))))).rejects.toThrow(message)
    },
  )

  test('give an error with advice if their file is missing, invalid, or made for another client', async () => {
    await expect(read(await open(asPerson(join(folder, 'none.json'))))).rejects.toThrow(/hikidashi auth gdrive/)
    const file = await keep()
    await writeFile(file, '{"refresh_token": "canary"}')
    await expect(read(await open(asPerson(file)))).rejects.toThrow(/hikidashi auth gdrive/)
    const other = {
      credentials: { kind: 'person', client: { id: 'other', secret: 'x' }, tokenFile: await keep() },
    } as const
    await expect(read(await open(other))).rejects.toThrow(/another client/)
  })
})

describe('the key of a Google service account', () => {
  test('impersonates the delegated user, and nobody else', async () => {
    drive.oauth.settings.delegated.add('boss@example.com')
    const key = drive.oauth.key
    const boss = await open({ credentials: { kind: 'service', key, subject: 'boss@example.com' } })
    expect(await read(boss)).toBe('first')
    expect([...drive.oauth.issued.values()].map(({ subject }) => subject)).toEqual(['boss@example.com'])
    const other = await open({ credentials: { kind: 'service', key, subject: 'eve@example.com' } })
    await expect(read(other)).rejects.toMatchObject({ kind: 'unavailable' })
  })

  test.each(['', '{', '[]', '{"type":"authorized_user"}', '{"type":"service_account","private_key":"canary"}'])(
    'must be valid: %j is refused',
    async (key) => {
      await expect(read(await open({ credentials: { kind: 'service', key } }))).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringContaining('"key" is not the key'),
        detail: { reason: 'configuration' },
      })
    },
  )
})

describe('the application default credentials', () => {
  test('come from the environment, and no metadata server is asked', async () => {
    const file = join(folder, 'adc.json')
    await writeFile(file, drive.oauth.key)
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', file)
    expect(await read(await open({ credentials: { kind: 'default' } }))).toBe('first')
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', '')
    vi.stubEnv('METADATA_SERVER_DETECTION', '')
    vi.stubEnv('HOME', folder)
    const lookUps = vi.spyOn(globalThis, 'fetch')
    await expect(read(await open({ credentials: { kind: 'default' } }))).rejects.toThrow(
      /No usable credentials were found/,
    )
    expect(lookUps).not.toHaveBeenCalled()
    lookUps.mockRestore()
  })
})

describe('requests of a Drive mount', () => {
  test('are sent to Google only, whatever is configured, and follow no redirect', async () => {
    const fetched = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('stubbed'))
    const transport = createTransport(undefined, 1000)
    const refused = [
      'http://www.googleapis.com/',
      'https://www.googleapis.com.evil.example/',
      'https://169.254.169.254/',
    ]
    for (const url of [...refused, 'https://metadata.google.internal/', 'https://www.googleapis.com:8443/'])
      await expect(transport(new URL(url))).rejects.toMatchObject({ code: 'EREFUSED' })
    expect(fetched).not.toHaveBeenCalled()
    await expect(transport(new URL('https://www.googleapis.com/drive/v3/files'))).rejects.toThrow('stubbed')
    expect(fetched.mock.calls.map(([url, init]) => [url, init?.redirect])).toEqual([
      ['https://www.googleapis.com/drive/v3/files', 'manual'],
    ])
    fetched.mockRestore()
    for (const endpoint of ['http://10.0.0.1:80', 'https://example.com', 'http://169.254.169.254'])
      await expect(open({ endpoint })).rejects.toMatchObject({ kind: 'invalid' })
  })

  test('fail if Google answers with a redirect', async () => {
    const provider = await open({ timeoutMs: 2000 })
    drive.intercept = ({ path }, response) => {
      if (!path.startsWith('/drive/v3/files')) return false
      response.writeHead(302, { location: `${drive.url}/elsewhere` })
      response.end()
      return true
    }
    await expect(read(provider)).rejects.toMatchObject({ kind: 'unavailable' })
    expect(drive.calls.some(({ path }) => path === '/elsewhere')).toBe(false)
  })
})

describe('an error of Google Drive', () => {
  const failing = (times: number, status: number, reason: string, headers = {}) => {
    let left = times
    drive.intercept = ({ path, query }, response) => {
      if (!path.startsWith('/drive/v3/files/') || query.get('alt') !== 'media' || left-- <= 0) return false
      sendDriveError(response, status, reason, undefined, headers)
      return true
    }
  }

  test.each([
    [403, 'userRateLimitExceeded'],
    [403, 'rateLimitExceeded'],
    [429, 'rateLimitExceeded'],
    [500, 'internalError'],
    [503, 'backendError'],
  ])('that is temporary is tried again: %i %s', async (status, reason) => {
    const provider = await open()
    await provider.stat?.('same-a', contextOf())
    failing(2, status, reason)
    expect(await read(provider)).toBe('first')
  })

  test('that does not end is reported within the time-out, with its reason, and no request is sent while Google asks to wait', async () => {
    const provider = await open({ timeoutMs: 1500 })
    await provider.stat?.('same-a', contextOf())
    failing(100, 403, 'userRateLimitExceeded')
    await expect(read(provider)).rejects.toMatchObject({ kind: 'unavailable' })
    failing(1000, 429, 'rateLimitExceeded', { 'retry-after': '3600' })
    await expect(read(provider)).rejects.toThrow(/limits the rate of requests/)
    // While Google asks for that, nothing is asked.
    await vi.waitFor(
      async () => {
        // What was given up may still be on its way.
        const before = drive.calls.length
        await expect(read(provider)).rejects.toThrow(/limits the rate of requests/)
        expect(drive.calls.length).toBe(before)
      },
      { timeout: 30_000, interval: 100 },
    )
    const other = await open()
    failing(1000, 403, 'insufficientPermissions')
    await expect(read(other)).rejects.toThrow(/drive\.readonly/)
  })

  test('states how long Google asks to wait', () => {
    const headers = new Headers({ 'retry-after': '7' })
    const inOneMinute = new Date(Date.now() + 60_000).toUTCString()
    expect(toRequestFault({ response: { status: 429, data: '{}', headers } })).toEqual({
      status: 429,
      retryAfterMs: 7000,
    })
    const fault = toRequestFault({ response: { status: 503, data: '', headers: { 'retry-after': inOneMinute } } })
    expect(fault.retryAfterMs).toBeGreaterThan(30_000)
    expect(toRequestFault({ response: { status: 503, data: '', headers: {} } })).toEqual({ status: 503 })
  })

  test('such as a truncated or wrong body is corrected by another attempt', async () => {
    const provider = await open()
    await provider.stat?.('same-a', contextOf())
    let times = 0
    drive.intercept = ({ query }, response) => {
      if (query.get('alt') !== 'media' || times++ > 1) return false
      if (times === 1) {
        response.writeHead(200, { 'content-length': 5 })
        response.write('fi', () => response.destroy())
      } else response.end('wrong')
      return true
    }
    expect(await read(provider)).toBe('first')
    expect(times).toBe(3)
  })

  test('such as a missing answer ends when the caller aborts, or with the time-out', async () => {
    const provider = await open({ timeoutMs: 1000 })
    await provider.stat?.('same-a', contextOf())
    drive.intercept = () => true
    const gone = new AbortController()
    const reading = provider.read({ path: 'same-a', params: new Map() }, contextOf(gone.signal))
    gone.abort(new Error('gone'))
    await expect(reading).rejects.toThrow('gone')
    await expect(read(provider)).rejects.toThrow(/did not answer within 1000 ms/)
  })
})

describe('the sign-in of a Google user', () => {
  const ask = (visit: (url: string) => Promise<unknown>, timeoutMs = 30_000) => {
    const visits: Promise<unknown>[] = []
    const grant = requestConsent({
      client: drive.oauth.client,
      timeoutMs,
      endpoint: drive.url,
      show: (url) => void visits.push(visit(url)),
    })
    return grant.catch((error: unknown) => {
      said.push(error)
      throw error
    })
  }

  test('gives credentials that can be stored, and uses PKCE', async () => {
    const grant = await ask((url) => fetch(url))
    expect(drive.oauth.refreshTokens.has(grant.refreshToken)).toBe(true)
    expect(grant).toMatchObject({ version: 1, clientId: drive.oauth.client.id })
  })

  test('ignores an answer with the wrong state, and continues', async () => {
    const forged: number[] = []
    const grant = await ask(async (url) => {
      const back = new URL(new URL(url).searchParams.get('redirect_uri') ?? '')
      for (const query of ['code=stolen', 'code=stolen&state=wrong', 'error=access_denied&state='])
        forged.push((await fetch(`${back.href}?${query}`)).status)
      forged.push((await fetch(`${back.href}other?code=x`)).status)
      await fetch(url)
    })
    expect(forged).toEqual([400, 400, 400, 400])
    expect(drive.oauth.refreshTokens.has(grant.refreshToken)).toBe(true)
  })

  test.each([
    ['denies', /was not granted/],
    ['ticks nothing', /tick the requested access/],
  ] as const)('reports that the user %s', async (person, message) => {
    drive.oauth.settings.person = person
    await expect(ask((url) => fetch(url))).rejects.toThrow(message)
  })

  test('ends with an error if the user does not answer in time', async () => {
    await expect(ask(async () => {}, 50)).rejects.toThrow(/in time/)
  })
})
