import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { run, start } from '../support/cli.ts'
import { fillDrive } from '../support/drive-samples.ts'
import { type DriveStandIn, startDrive } from '../support/drive-stand-in.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

let drive: DriveStandIn
let home: string
beforeEach(async () => {
  drive = await startDrive()
  fillDrive(drive)
  home = await mkdtemp(join(tmpdir(), 'hikidashi-auth-'))
})
afterEach(async () => {
  await drive.close()
  await rm(home, { recursive: true })
})

const environment = () => ({ DRIVE_CLIENT_ID: drive.oauth.client.id, DRIVE_CLIENT_SECRET: drive.oauth.client.secret })

async function writeConfig(...addresses: readonly string[]): Promise<void> {
  const mount = {
    provider: 'gdrive',
    clientId: { env: 'DRIVE_CLIENT_ID' },
    clientSecret: { env: 'DRIVE_CLIENT_SECRET' },
    endpoint: drive.url,
  }
  const mounts = Object.fromEntries(addresses.map((address) => [address, mount]))
  await writeFile(join(home, 'hikidashi.json'), JSON.stringify({ mounts }))
}

const command = (...args: readonly string[]) =>
  run([...args, '--config', 'hikidashi.json'], { cwd: home, env: environment() })

describe('hikidashi auth gdrive', () => {
  test('sends the user to Google and stores credentials that only this user may access; read then prints a file of Drive, unless others may read the credentials', async () => {
    await writeConfig('gdrive://me')
    const before = await command('read', 'gdrive://me/docs/plan')
    expect(before.err).toContain('hikidashi auth gdrive')
    expect(before.code).not.toBe(0)
    const asking = start(['auth', 'gdrive', '--config', 'hikidashi.json'], { cwd: home, env: environment() })
    const [url = ''] = await asking.says(/http:\/\/127\.0\.0\.1:\d+\/o\/oauth2\/v2\/auth\?\S+(?=\s)/)
    const query = new URL(url).searchParams
    expect(query.get('scope')).toBe('https://www.googleapis.com/auth/drive.readonly')
    expect(query.get('redirect_uri')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
    expect(await (await fetch(url)).text()).toContain('Google has answered')
    const { code, out, err } = await asking.ended
    expect({ code, out }).toEqual({ code: 0, out: '' })
    const file = join(home, 'gdrive-token.json')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const { refreshToken } = JSON.parse(await readFile(file, 'utf8')) as { refreshToken: string }
    expect(drive.oauth.refreshTokens.has(refreshToken)).toBe(true)
    expect(err).not.toMatch(/canary|stand-in-client-secret/)
    const after = await command('read', 'gdrive://me/docs/plan')
    expect(after).toMatchObject({ code: 0, out: '# Plan\n\nHello, 世界.\n' })
    await chmod(file, 0o644)
    expect((await command('read', 'gdrive://me/docs/plan')).err).toContain('chmod 600')
  })

  test('reports that no mount or several mounts match, that the user does not answer in time, and that the user declines', async () => {
    await writeFile(
      join(home, 'hikidashi.json'),
      JSON.stringify({ mounts: { 'file:///x': { provider: 'files', root: '.' } } }),
    )
    expect(await command('auth', 'gdrive')).toMatchObject({
      code: 2,
      err: expect.stringContaining('no mount of Google Drive'),
    })
    await writeConfig('gdrive://a', 'gdrive://b')
    expect(await command('auth', 'gdrive')).toMatchObject({
      code: 2,
      err: expect.stringContaining('has several mounts'),
    })
    expect(await command('auth', 'gdrive', 'gdrive://c')).toMatchObject({ code: 4 })
    expect(await command('auth', 'gdrive', 'gdrive://a', '--wait', '1s')).toMatchObject({
      code: 1,
      err: expect.stringContaining('Access to Drive was not granted in time'),
    })
    drive.oauth.settings.person = 'denies'
    const asking = start(['auth', 'gdrive', 'gdrive://b', '--config', 'hikidashi.json'], {
      cwd: home,
      env: environment(),
    })
    const [url = ''] = await asking.says(/http:\/\/127\.0\.0\.1:\d+\/o\/oauth2\/v2\/auth\?\S+(?=\s)/)
    await fetch(url)
    expect(await asking.ended).toMatchObject({ code: 1, err: expect.stringContaining('was not granted') })
    await expect(stat(join(home, 'gdrive-token.json'))).rejects.toThrow()
  })
})
