import { readFileSync, watch } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { browserCommand, openInBrowser } from '../../src/cli/commands/ui.ts'
import { createFolder } from '../support/folder.ts'

describe('the browser of the user', () => {
  const folder = createFolder()
  afterAll(folder.remove)

  test.each([
    ['darwin', {}, ['open']],
    ['win32', {}, ['rundll32.exe', 'url.dll,FileProtocolHandler']],
    ['linux', { DISPLAY: ':0' }, ['xdg-open']],
    ['linux', { WAYLAND_DISPLAY: 'wayland-0' }, ['xdg-open']],
    ['linux', { WSL_DISTRO_NAME: 'Debian' }, ['xdg-open']],
    ['linux', { DISPLAY: '' }, undefined],
    ['linux', {}, undefined],
  ] as const)('on %s with %j is opened by the command %j (undefined: by none)', (platform, env, opener) => {
    expect(browserCommand(platform, env)).toEqual(opener)
  })

  test('gets the address as one argument, without a shell', async () => {
    const file = folder.at('opened')
    folder.write({
      'opener.mjs': "import { writeFileSync } from 'node:fs'\nwriteFileSync(process.argv[2], process.argv[3])",
    })
    const written = new Promise<void>((resolve) => {
      const watcher = watch(folder.root, () => {
        try {
          if (readFileSync(file, 'utf8') === '') return
        } catch {
          return
        }
        watcher.close()
        resolve()
      })
    })
    const address = 'http://127.0.0.1:1/x/#token=a;$(id)&"b c'
    expect(await openInBrowser(address, [process.execPath, folder.at('opener.mjs'), file])).toBe(true)
    await written
    expect(readFileSync(file, 'utf8')).toBe(address)
  })

  test('is reported as not opened if the program that opens it does not exist', async () => {
    expect(await openInBrowser('http://127.0.0.1:1/', ['hikidashi-no-such-program'])).toBe(false)
  })
})
