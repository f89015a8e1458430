import { prices } from "../lib/shop";

export default function Page() {
  return (
    <form action="/orders" method="post">
      {Object.keys(prices).map((product) => (
        <button key={product} name="product" value={product}>
          Buy {product}
        </button>
      ))}
    </form>
  );
}
