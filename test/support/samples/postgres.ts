import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** No database answers at the URL, so nothing is listed. */
export const isEmpty = true

export async function start(folder: string) {
  const file = join(folder, '.git', 'postgres')
  writeFileSync(file, 'postgres://reader@127.0.0.1:1/sample')
  return { mount: { url: { file } } }
}
