import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** Copies the example of an external source into a folder where its module finds the package by name. Returns its configuration. */
export function writeOwnSource(folder: string): string {
  for (const name of ['notebook.js', 'notebook.json', 'package.json', 'hikidashi.json'])
    copyFileSync(join(root, 'examples/own-source', name), join(folder, name))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/hikidashi'), 'junction')
  return join(folder, 'hikidashi.json')
}
