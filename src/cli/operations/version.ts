import { readFileSync } from 'node:fs'

function readPackage(): { readonly version: string; readonly private?: boolean } {
  return JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
}

/** The version of this package. */
export function packageVersion(): string {
  return readPackage().version
}

/** Whether `npx hikidashi` finds this package. While package.json says "private", npm refuses to publish it. */
export function isPublished(): boolean {
  return readPackage().private !== true
}
