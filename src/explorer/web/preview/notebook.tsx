import { createUrl, releaseUrl } from '../state/browser.ts'
import './markdown.css'
import { useEffect, useState } from 'preact/hooks'
import { shown } from '../words/texts.ts'
import { Region } from './controls.tsx'
import { Markdown } from './markdown.tsx'
import type { Notebook as NotebookModel, Output } from './model/documents.ts'
import { imageTypeOf } from './model/kind.ts'
import { t } from './words.ts'

interface Props {
  readonly notebook: NotebookModel
  readonly uri: string
}

/** A Jupyter notebook: its texts, its code, and the stored outputs. Nothing in it runs. */
export function Notebook({ notebook: { cells, isCut }, uri }: Props) {
  return (
    <Region class="notebook" label={t('rendered')}>
      {isCut ? <p class="preview-banner">{t('shortened')}</p> : null}
      {cells.map(({ markdown, count, outputs }, index) => (
        <div key={index} class="notebook-cell">
          {count === undefined ? null : <p class="notebook-count">[{count}]</p>}
          <Markdown text={markdown} uri={uri} isInline />
          {outputs.map((output, at) => (
            <OutputView key={at} output={output} />
          ))}
        </div>
      ))}
    </Region>
  )
}

function OutputView({ output }: { readonly output: Output }) {
  if (output.kind === 'image') return <ImageOutput base64={output.base64} />
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keys.
    <pre class="notebook-output" tabIndex={0}>
      {shown(output.text)}
    </pre>
  )
}

function ImageOutput({ base64 }: { readonly base64: string }) {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const bytes = bytesOf(base64)
    const type = bytes === undefined ? undefined : imageTypeOf(bytes)
    if (bytes === undefined || type === undefined) return
    const made = createUrl(bytes, type)
    setUrl(made)
    return () => releaseUrl(made)
  }, [base64])
  return (
    <div class="notebook-output">{url === undefined ? t('imageFailed') : <img src={url} alt={t('outputImage')} />}</div>
  )
}

function bytesOf(base64: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
  } catch {
    return undefined
  }
}
