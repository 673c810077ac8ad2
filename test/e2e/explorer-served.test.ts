import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { run, start } from '../support/cli.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'

const folder = createFolder()
folder.write({ 'readme.md': '# Hello\n' })
afterAll(folder.remove)

/** Writes a configuration that serves the folder over HTTP, and answers the options that name it. */
function configured(http: object): readonly string[] {
  const file = join(folder.outside, `${Object.keys(http).join('-')}.json`)
  writeFileSync(file, JSON.stringify({ mounts: { 'file:///notes': { provider: 'files', root: folder.root } }, http }))
  return ['--config', file]
}

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('over HTTP,', () => {
  const tabs = useBrowser()
  let explorer: Explored
  beforeAll(async () => {
    explorer = await serveExplorer(configured({ path: '/team/context' }), { cwd: folder.outside })
  })
  afterAll(() => explorer.end())

  test('the explorer is served beside the MCP endpoint at a configured path, and passes the accessibility check (axe)', async () => {
    expect(explorer.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/team\/$/)
    const page = await tabs.open(explorer.url)
    await page.getByRole('treeitem', { name: 'readme.md' }).waitFor()
    expect(await axe(page)).toEqual([])
  })
})

test('a server has no explorer if its configuration turns it off, and refuses to serve one if the MCP path is /', async () => {
  const args = configured({ explorer: false })
  const server = start(['serve', ...args, '--http', '0'], { cwd: folder.outside })
  const [, url = ''] = await server.says(/serves 1 mount at (\S+)\/mcp\n/)
  expect((await fetch(`${url}/`)).status).toBe(404)
  server.child.kill('SIGTERM')
  expect((await server.ended).err).not.toContain('Explore it')
  const refused = await run(['serve', ...configured({ explorer: true, path: '/' }), '--http', '0'], {
    cwd: folder.outside,
  })
  expect(refused).toMatchObject({ code: 1, out: '' })
  expect(refused.err).toContain('End the path with a name')
})
