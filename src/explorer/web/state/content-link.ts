import { contentLinkIn } from '../../../client/wire.ts'
import { isResourceError } from '../../../core/errors.ts'
import { connected } from './session.ts'

/**
 * Returns a URL for the bytes of a resource that is too large for an answer, from the error of reading it. Undefined when it is not
 * too large, or when the server gives no such link. A link to another origin is not followed.
 *
 * @throws ResourceError of any other failure of the read.
 */
export async function largeContentUrl(uri: string, signal?: AbortSignal): Promise<string | undefined> {
  try {
    await connected().view.read(uri, signal === undefined ? {} : { signal })
    return undefined
  } catch (error) {
    if (!isResourceError(error, 'too-large')) throw error
    return linkIn(error.cause)
  }
}

/** @param data The data of the JSON-RPC error. */
export function linkIn(data: unknown): string | undefined {
  return contentLinkIn(data, document.baseURI)?.href
}

/** Characters that file names may not contain on some system: separators, invisible and special characters. */
const notInNames = /[\p{C}\p{Zl}\p{Zp}<>:"/\\|?*%]+/gu
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i

/** Makes a safe file name from any text: never a path, a hidden file or a device. At most 120 characters. */
export function fileNameOf(text: string, otherwise = 'resource'): string {
  const name = text
    .normalize('NFC')
    .replace(notInNames, '_')
    .replace(/^[.\s]+|[.\s]+$/g, '')
  const dot = name.lastIndexOf('.')
  const end = dot > 0 && name.length - dot <= 12 ? name.slice(dot) : ''
  const characters = [...name.slice(0, name.length - end.length)]
  const short = `${characters.slice(0, 120 - end.length).join('')}${end}`
  if (short === '' || short === '_') return otherwise
  return reserved.test(short) ? `_${short}` : short
}
