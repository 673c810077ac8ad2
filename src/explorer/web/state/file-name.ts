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
