import './markdown.css'
import createDOMPurify from 'dompurify'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { createUrl, releaseUrl } from '../state/browser.ts'
import { escapeInvisible, langOf } from '../words/texts.ts'
import { completeDocument, type DocumentHeading } from './dressed.ts'
import { SearchableRegion } from './find.tsx'
import type { MarkdownHtml } from './model/bounds.ts'
import type { Notebook as NotebookModel, NotebookOutput } from './model/documents.ts'
import { imageTypeOf } from './model/kind.ts'
import { t } from './words.ts'
import { parseMarkdown } from './workers.ts'

/** Maximum length of a rendered document, in characters: laying out a longer one takes the browser too long. */
const longest = 1_000_000

interface Props {
  readonly text: string
  readonly uri: string
  /** Whether the document is part of another view, without an outline and a scroll bar of its own. */
  readonly isInline?: boolean
}

/** A Markdown document. Its HTML is sanitised; nothing external is fetched. A worker parses it. */
export function Markdown({ text, uri, isInline = false }: Props) {
  const box = useRef<HTMLElement>(null)
  const page = useRef<HTMLDivElement>(null)
  const [headings, setHeadings] = useState<readonly DocumentHeading[]>([])
  const [html, setParsed] = useState<MarkdownHtml | undefined>(undefined)
  useEffect(() => {
    let isLeft = false
    void parseMarkdown(withFrontMatter(text.slice(0, longest))).then((newHtml) => {
      if (!isLeft) setParsed(newHtml)
    })
    return () => {
      isLeft = true
    }
  }, [text])
  useLayoutEffect(() => {
    if (page.current === null || html === undefined) return
    const top = box.current?.scrollTop ?? 0
    putClean(page.current, html.html)
    const { headings, end } = completeDocument(page.current, uri)
    setHeadings(headings)
    if (box.current !== null) box.current.scrollTop = top
    return end
  }, [html, uri])
  const document = (
    <>
      {html === undefined ? <p class="preview-note">{t('loading')}</p> : null}
      {html?.isCut === true ? <p class="preview-banner">{t('shortened')}</p> : null}
      <div ref={page} class="markdown" lang={langOf(text.slice(0, 20_000))} />
      {text.length > longest ? <p class="preview-note">{t('truncated')}</p> : null}
    </>
  )
  if (isInline) return <div class="markdown-inline">{document}</div>
  return (
    <div class="markdown-frame">
      <SearchableRegion box={box} class="markdown-scroll" label={t('rendered')}>
        {document}
      </SearchableRegion>
      {headings.length < 3 ? null : (
        <nav class="outline" aria-label={t('outline')}>
          <h3>{t('outline')}</h3>
          <ul>
            {headings.slice(0, maxHeadings).map(({ id, text: name, level }) => (
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

/** Maximum number of headings in the outline. */
const maxHeadings = 500

function goTo(page: HTMLElement | null, id: string): void {
  const heading = page?.querySelector<HTMLElement>(`[id="${CSS.escape(id)}"]`)
  heading?.scrollIntoView({ block: 'start' })
  heading?.focus({ preventScroll: true })
}

/** Returns the text with its YAML front matter as a block of code. */
function withFrontMatter(text: string): string {
  const [whole, yaml] = /^\ufeff?---\r?\n([\s\S]{0,20000}?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(text) ?? []
  if (whole === undefined || yaml === undefined || yaml.includes('```')) return text
  return `\`\`\`yaml\n${yaml}\n\`\`\`\n\n${text.slice(whole.length)}`
}

/** The only sanitiser of the page. The name of its Trusted Types policy is `dompurify`. */
const purify = createDOMPurify(window)

/**
 * References of links and images are moved to `data-href` and `data-image`, so that the browser neither fetches nor follows them before the
 * page has decided about them. Classes other than the language of a code block are those of the page itself.
 */
purify.addHook('beforeSanitizeAttributes', (node) => {
  if (!(node instanceof Element)) return
  for (const name of ['data-href', 'data-image']) node.removeAttribute(name)
  move(node, 'href', 'data-href')
  if (node.nodeName === 'IMG') move(node, 'src', 'data-image')
  const language = /(?:^|\s)(language-[\w+#-]{1,40})/.exec(node.getAttribute('class') ?? '')?.[1]
  if (language === undefined) node.removeAttribute('class')
  else node.setAttribute('class', language)
})

function move(node: Element, from: string, to: string): void {
  const value = node.getAttribute(from)
  if (value === null) return
  node.removeAttribute(from)
  node.setAttribute(to, value)
}

const tags = [
  'a abbr b blockquote br caption cite code col colgroup dd del details dfn div dl dt em figcaption figure h1 h2',
  'h3 h4 h5 h6 hr i img input ins kbd li mark ol p pre q rp rt ruby s samp section small span strong sub summary',
  'sup table tbody td tfoot th thead time tr u ul var wbr',
].flatMap((line) => line.split(' '))
const attributes = [
  'align alt checked class colspan data-href data-image datetime dir disabled height id lang open reversed',
  'rowspan scope start title type width',
].flatMap((line) => line.split(' '))

/** Writes third-party HTML into an element, without anything active. */
function putClean(into: Element, html: string): void {
  const clean = purify.sanitize(html, {
    RETURN_TRUSTED_TYPE: true,
    SANITIZE_NAMED_PROPS: true,
    ALLOWED_TAGS: tags,
    ALLOWED_ATTR: attributes,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  })
  // Browsers accept trusted HTML where the DOM types say string.
  into.innerHTML = clean as unknown as string
}

/** A Jupyter notebook: its texts, its code, and the stored outputs. Nothing in it runs. */
export function Notebook({ cells, isCut, uri }: NotebookModel & { readonly uri: string }) {
  return (
    <SearchableRegion class="notebook" label={t('rendered')}>
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
    </SearchableRegion>
  )
}

function OutputView({ output }: { readonly output: NotebookOutput }) {
  if (output.kind === 'image') return <ImageOutput base64={output.base64} />
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: an output that scrolls must be reachable by keys
    <pre class={output.kind === 'error' ? 'notebook-output failed' : 'notebook-output'} tabIndex={0}>
      {escapeInvisible(output.text)}
    </pre>
  )
}

function ImageOutput({ base64 }: { readonly base64: string }) {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const bytes = tryDecodeBase64(base64)
    const type = bytes === undefined ? undefined : imageTypeOf(bytes)
    if (bytes === undefined || type === undefined) return
    const url = createUrl(bytes, type)
    setUrl(url)
    return () => releaseUrl(url)
  }, [base64])
  return (
    <div class="notebook-output">{url === undefined ? t('imageFailed') : <img src={url} alt={t('outputImage')} />}</div>
  )
}

function tryDecodeBase64(base64: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
  } catch {
    return undefined
  }
}
