import { formatSize } from '../words/texts.ts'
import { VirtualRows } from './controls.tsx'
import { t } from './words.ts'

interface Props {
  readonly bytes: Uint8Array
  /** The size of the whole content, if this is its beginning. */
  readonly size: number | undefined
}

/** Preview of bytes of an unknown type. */
export function Binary({ bytes, size }: Props) {
  const rows = Math.ceil(bytes.length / bytesInRow)
  return (
    <div class="binary">
      <p class="preview-note">{t('binary', { size: formatSize(size ?? bytes.length) })}</p>
      <VirtualRows
        class="hex"
        count={rows}
        tabIndex={0}
        role="region"
        aria-label={t('binary', { size: formatSize(size ?? bytes.length) })}
        row={(index) => {
          const { offset, bytes: digits, text } = hexRow(bytes, index)
          return (
            <div key={index} class="hex-row">
              <span class="quiet">{offset}</span>
              {'  '}
              {digits}
              {'  '}
              {text}
            </div>
          )
        }}
      />
    </div>
  )
}

/** Number of bytes in a row. */
const bytesInRow = 16

interface HexRow {
  readonly offset: string
  readonly bytes: string
  readonly text: string
}

/** Formats bytes as a hex dump: offset, hexadecimal digits, and ASCII characters. */
export function hexRow(bytes: Uint8Array, row: number): HexRow {
  const start = row * bytesInRow
  const part = bytes.subarray(start, start + bytesInRow)
  const pairs = Array.from(part, (byte) => byte.toString(16).padStart(2, '0'))
  return {
    offset: start.toString(16).padStart(8, '0'),
    bytes: [pairs.slice(0, 8).join(' '), pairs.slice(8).join(' ')].join('  ').padEnd(48),
    text: String.fromCharCode(...part.map((byte) => (byte >= 0x20 && byte < 0x7f ? byte : 0x2e))),
  }
}
