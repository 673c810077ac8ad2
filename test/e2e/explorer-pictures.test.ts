import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { scenes, writePictureFolder } from '../../scripts/picture-scenes.ts'
import { axe, chromiumReason, type Explored, hasChromium, serveExplorer, useBrowser } from '../support/browser.ts'
import { createFolder } from '../support/folder.ts'
import { requires } from '../support/require.ts'
import { someOf } from '../support/volume.ts'

requires(
  'chromium',
  hasChromium,
  chromiumReason,
)('the pictures of the explorer in the documentation', () => {
  const folder = createFolder()
  const tabs = useBrowser()
  let explorer: Explored

  beforeAll(async () => {
    const config = writePictureFolder(join(folder.root, 'pictures'))
    explorer = await serveExplorer(['--config', config], { cwd: folder.outside })
  })
  afterAll(async () => {
    await explorer.end()
    folder.remove()
  })

  for (const { name, window, place, arrange } of someOf('pictures', scenes, 3))
    test(`can be taken, and axe finds no problem in them: ${name}`, async () => {
      const page = await tabs.open(`${explorer.url}#${place}`, window)
      await arrange(page)
      expect(await axe(page)).toEqual([])
    })
})
