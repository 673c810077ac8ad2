import { TextView } from '../preview/text.tsx'

/** In a host, a document in HTML is shown as its source: the policy of the host allows no frame for it. */
export const Page: typeof import('../preview/page.tsx').Page = ({ text }) => (
  <TextView text={text} language="html" wrap={true} />
)
