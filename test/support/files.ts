import * as fs from 'node:fs'
import { afterEach, beforeEach, expect } from 'vitest'
import type { Provider } from '../../src/core/provider.ts'
import { createFiles, type FilesOptions } from '../../src/providers/files/index.ts'
import { createFolder, type Folder, openBelow } from './folder.ts'

/** A fresh folder for each test of a file, and providers of it that are closed after the test. */
export interface ServedFiles {
  /** The folder of the current test. */
  readonly folder: Folder
  /** Opens a provider of the folder. `portable`: as on systems without descriptors of directories. */
  open(options?: Partial<FilesOptions>, portable?: boolean): Promise<Provider>
}

/** @param canary Content of a file `f` outside of the folder. */
export function useFiles(canary?: string): ServedFiles {
  let folder: Folder | undefined
  const opened: Provider[] = []
  const current = () => {
    if (folder === undefined) throw new Error('there is a folder only while a test runs')
    return folder
  }
  beforeEach(() => {
    folder = createFolder()
    if (canary !== undefined) fs.writeFileSync(`${folder.outside}/f`, canary)
  })
  afterEach(async () => {
    for (const provider of opened.splice(0)) await provider.close?.()
    // Aborted work ends a little later.
    await expect.poll(() => openBelow(current().root), { message: 'no descriptor is left open' }).toEqual([])
    current().remove()
  })
  return {
    folder: {
      get root() {
        return current().root
      },
      get outside() {
        return current().outside
      },
      at: (name) => current().at(name),
      write: (tree) => current().write(tree),
      remove: () => current().remove(),
    },
    open: async (options = {}, portable = false) => {
      const provider = await createFiles({ root: current().root, ...options }, { portable })
      opened.push(provider)
      return provider
    },
  }
}
