import createDOMPurify from 'dompurify'

/** The one cleaner of the page. Its policy of trusted types has the name `dompurify`. */
const purify = createDOMPurify(window)

/**
 * The page decides about targets of links and images: references are moved to `data-href` and `data-image`, so that
 * nothing is fetched or followed before. Of classes only the language of a block of code is kept: others are the page's own.
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
  ...[
    'a',
    'abbr',
    'b',
    'blockquote',
    'br',
    'caption',
    'cite',
    'code',
    'col',
    'colgroup',
    'dd',
    'del',
    'details',
    'dfn',
    'div',
  ],
  ...[
    'dl',
    'dt',
    'em',
    'figcaption',
    'figure',
    'h1',
    'h2',
    'h3',
    'h4',
    'h5',
    'h6',
    'hr',
    'i',
    'img',
    'input',
    'ins',
    'kbd',
    'li',
  ],
  ...[
    'mark',
    'ol',
    'p',
    'pre',
    'q',
    'rp',
    'rt',
    'ruby',
    's',
    'samp',
    'section',
    'small',
    'span',
    'strong',
    'sub',
    'summary',
  ],
  ...['sup', 'table', 'tbody', 'td', 'tfoot', 'th', 'thead', 'time', 'tr', 'u', 'ul', 'var', 'wbr'],
]
const attributes = [
  ...[
    'align',
    'alt',
    'checked',
    'class',
    'colspan',
    'data-href',
    'data-image',
    'datetime',
    'dir',
    'disabled',
    'height',
    'id',
  ],
  ...['lang', 'open', 'reversed', 'rowspan', 'scope', 'start', 'title', 'type', 'width'],
]

/** Puts HTML that others wrote into an element: text, lists, tables and the like, and nothing that does anything. */
export function putClean(into: Element, html: string): void {
  const clean = purify.sanitize(html, {
    RETURN_TRUSTED_TYPE: true,
    SANITIZE_NAMED_PROPS: true,
    ALLOWED_TAGS: tags,
    ALLOWED_ATTR: attributes,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  })
  // Browsers take trusted HTML in the place of a text.
  into.innerHTML = clean as unknown as string
}
