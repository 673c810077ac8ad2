import { baseName } from '../../core/path.ts'
import { mimeTypeFor, mimeTypeOf } from '../files/media.ts'

/**
 * Returns the MIME type of an object: by its name and content. When these show only text or bytes, the stored type is used, unless it is
 * executable in a browser.
 */
export function typeOf(
  path: string,
  mimeType: string | undefined,
  content: { readonly text: boolean; readonly head: Buffer },
): string {
  const own = mimeTypeFor(baseName(path), content)
  const isVague = own === 'text/plain' || own === 'application/octet-stream'
  const stored = isVague && mimeTypeOf(baseName(path)) === undefined ? storedType(mimeType) : undefined
  const isStoredText = stored !== undefined && /^text\/|[+/]json$/.test(stored)
  return stored !== undefined && isStoredText === content.text ? stored : own
}

/** Returns the stored type without its parameters, if it is valid and not executable. */
export function storedType(mimeType: string | undefined): string | undefined {
  const type = mimeType?.split(';')[0]?.trim().toLowerCase()
  if (type === undefined || !/^[a-z]{1,20}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}$/.test(type)) return undefined
  return /html|xml|script|svg|octet-stream|x-www-form-urlencoded/.test(type) ? undefined : type
}
