import './markdown.css'
import { Marked } from 'marked'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { langOf } from '../state/lang.ts'
import { dressed, type Heading } from './dressed.ts'
import { putClean } from './purify.ts'
import { Region } from './region.tsx'
import { t } from './words.ts'

const marked = new Marked({ gfm: true, async: false })

/** Beyond this many characters a text is not laid out as a document: it takes the browser too long. */
const longest = 2_000_000

/** A document in Markdown. What is HTML in it is cleaned; nothing is fetched from elsewhere. */
export function Markdown({ text, uri }: { readonly text: string; readonly uri: string }) {
  const box = useRef<HTMLElement>(null)
  const page = useRef<HTMLDivElement>(null)
  const [headings, setHeadings] = useState<readonly Heading[]>([])
  const html = useMemo(() => marked.parse(withFrontMatter(text.slice(0, longest))) as string, [text])
  useLayoutEffect(() => {
    if (page.current === null) return
    const top = box.current?.scrollTop ?? 0
    putClean(page.current, html)
    const { headings: found, end } = dressed(page.current, uri)
    setHeadings(found)
    if (box.current !== null) box.current.scrollTop = top
    return end
  }, [html, uri])
  return (
    <div class="markdown-frame">
      <Region box={box} class="markdown-scroll" label={t('rendered')}>
        <div ref={page} class="markdown" lang={langOf(text.slice(0, 20_000))} />
        {text.length > longest ? <p class="preview-note">{t('truncated')}</p> : null}
      </Region>
      {headings.length < 3 ? null : (
        <nav class="outline" aria-label={t('outline')}>
          <h3>{t('outline')}</h3>
          <ul>
            {headings.map(({ id, text: name, level }) => (
              <li key={id} style={{ paddingLeft: `${(level - 1) * 12}px` }}>
                <button type="button" onClick={() => goTo(page.current, id)} lang={langOf(name)}>
                  {name}
                </button>
              </li>
            ))}
          </ul>
        </nav>
      )}
    </div>
  )
}

function goTo(page: HTMLElement | null, id: string): void {
  const heading = page?.querySelector<HTMLElement>(`[id="${CSS.escape(id)}"]`)
  heading?.scrollIntoView({ block: 'start' })
  heading?.focus({ preventScroll: true })
}

/** What a document says of itself in YAML before it begins, as a block of code. */
function withFrontMatter(text: string): string {
  const [whole, yaml] = /^\ufeff?---\r?\n([\s\S]{0,20000}?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text) ?? []
  if (whole === undefined || yaml === undefined || yaml.includes('```')) return text
  return `\`\`\`yaml\n${yaml}\n\`\`\`\n\n${text.slice(whole.length)}`
}
