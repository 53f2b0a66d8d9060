package orders;

/** The body of a request. Its text is what Lombok's {@code @Data} gives, as the original experiment logs it. */
public class Order {
    private Long userId;
    private Long productId;
    private String detail;

    public Long getUserId() {
        return userId;
    }

    public void setUserId(Long userId) {
        this.userId = userId;
    }

    public Long getProductId() {
        return productId;
    }

    public void setProductId(Long productId) {
        this.productId = productId;
    }

    public String getDetail() {
        return detail;
    }

    public void setDetail(String detail) {
        this.detail = detail;
    }

    @Override
    public String toString() {
        return "Order(userId=" + userId + ", productId=" + productId + ", detail=" + detail + ")";
    }
}
