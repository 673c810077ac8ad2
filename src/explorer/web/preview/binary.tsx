import { formatSize } from '../words/language.ts'
import { bytesInRow, hexRow } from './model/hex.ts'
import { VirtualRows } from './virtual.tsx'
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
