// Runs the audits of graphql-http against the server at the given URL, and prints how each of them went, as JSON.
import { serverAudits } from 'graphql-http';

const [url] = process.argv.slice(2);
const results = await Promise.all(
  serverAudits({ url, fetchFn: fetch }).map((audit) => audit.fn()),
);
console.log(
  JSON.stringify(
    results.map(({ id, name, status, reason }) => ({ id, name, status, reason: reason ?? null })),
  ),
);
